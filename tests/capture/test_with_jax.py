"""Captures made by JAX itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ..running import Run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)"
)
PROGRAM = """
import jax, jax.numpy as jnp

def f(x, p):
    return jax.nn.softmax(jnp.tanh(x) * p["w"])

def shapes():
    return jnp.ones((64, 32)), {"w": jnp.ones(32)}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def test_our_replay_is_what_was_captured(hlofuse: Run, program: Path) -> None:
    result = hlofuse(
        "capture", "program.py:f", "--args", "f32[64,32], {'w': f32[32]}", "--verify", "-o", "out"
    )
    assert (result.status, result.err) == (0, "")
    assert "1 of 1 module exact on target cpu" in result.out
    repeated_call = hlofuse("capture", "program.py:f", "--args-from", "shapes", "-o", "again")
    assert repeated_call.status == 0
    assert (program / "again/f/before.hlo").read_text() == (program / "out/f/before.hlo").read_text()
    lowered = hlofuse("capture", "out/f/before_optimizations.hlo", "-o", "lowered", "--verify")
    assert lowered.status == 0


def test_what_is_wrong_with_the_program_is_said(hlofuse: Run, program: Path) -> None:
    wrong = hlofuse("capture", "program.py:g")
    assert (wrong.status, wrong.out) == (2, "")
    assert "program.py has no g; it has f, shapes" in wrong.err
    wrong = hlofuse("capture", "program.py:f", "--args", "f32[64,32]")
    assert wrong.status == 2
    assert "the arguments of f(x, p) do not fit, 1 given" in wrong.err
    wrong = hlofuse("capture", "program.py:f", "--args", "f32[64,32], {'w': f32[31]}")
    assert wrong.status == 2
    assert "nothing was compiled for cpu" in wrong.err
    assert sorted(p.name for p in program.iterdir() if p.name != "__pycache__") == ["program.py"]


def test_from_python(program: Path) -> None:
    import jax.numpy as jnp

    import hlofuse

    def scaled(x: object) -> object:
        return jnp.exp(x) * 2

    captured = hlofuse.capture(scaled, jnp.ones(100), out=program / "scaled")
    assert captured.module().before == program / "scaled/scaled/before.hlo"
    replayed = hlofuse.replay(hlofuse.load(captured.module().before))
    assert [i.opcode for i in replayed.after.entry] == ["parameter", "fusion"]
