"""`run-as`: a program runs with modules of hlofuse, and what became of each is reported."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from ..running import Run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)"
)
PROGRAM = """
import sys
import jax, jax.numpy as jnp

@jax.jit
def norm(x):
    y = x - x.max(-1, keepdims=True)
    return jnp.exp(y) / jnp.exp(y).sum(-1, keepdims=True)

def shapes():
    return (jnp.ones((16, 32)),)

if __name__ == "__main__":
    x = jnp.sin(jnp.arange(512.0)).reshape(16, 32)
    text = norm.lower(x).compile().as_text()
    result = [sys.argv[1], str(text.count(" fusion(")), str(float((norm(x) * x).sum()))]
    open("result.txt", "w").write(" ".join(result))
"""


@pytest.fixture
def modules(hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program, its module as XLA fuses it and one with no fusion at all."""
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)
    assert hlofuse("capture", "program.py:norm", "--args-from", "shapes", "-o", "out").status == 0
    before = "out/norm/before_optimizations.hlo"
    assert hlofuse("replay", before, "--target", "cpu", "-o", "own.hlo").status == 0
    assert hlofuse("replay", before, "--target", "cpu", "--passes", "dce", "-o", "apart.hlo").status == 0
    return tmp_path


def test_modules_take_the_place_of_xlas(hlofuse: Run, modules: Path) -> None:
    def run(module: str) -> tuple[list[str], str]:
        command = ("run-as", module, "--", sys.executable, "program.py", "--steps")
        found = hlofuse(*command, PYTHONPATH=str(modules / "site"))
        assert found.status == 0
        return Path("result.txt").read_text().split(), found.err

    (modules / "site").mkdir()
    (modules / "site/sitecustomize.py").write_text("open('site.txt', 'a').write('.')")
    Path("other.hlo").write_text(Path("own.hlo").read_text().replace("[16,32]", "[16,64]"))
    plain, err = run("other.hlo")
    assert err == "other.hlo: not replaced: the module of this name has different parameters or results\n"
    assert Path("site.txt").read_text() == "."
    own, err = run("own.hlo")
    assert (own, err) == (plain, "own.hlo: replaced 1 time\n")
    apart, err = run("apart.hlo")
    assert (apart[0], err) == ("--steps", "apart.hlo: replaced 1 time\n")
    assert int(apart[1]) < int(plain[1])
    assert float(apart[2]) == pytest.approx(float(plain[2]), rel=1e-5)


def test_what_never_came(hlofuse: Run, modules: Path) -> None:
    found = hlofuse("run-as", "own.hlo", "--", sys.executable, "-c", "import sys; sys.exit(7)")
    assert found.status == 7
    first, note = found.err.splitlines()
    assert first == "own.hlo: never compiled"
    assert note == "note: nothing was replaced: COMMAND did not import JAX 0.11 or later"
    wrong = hlofuse("run-as", "out/norm/before_optimizations.hlo", "--", "true")
    assert wrong.status == 2
    assert "does not leave the fusion passes of XLA:CPU" in wrong.err
    assert hlofuse("run-as", "own.hlo", "true").status == 2
    assert hlofuse("run-as", "own.hlo", "--", "/nowhere/program").status == 2
