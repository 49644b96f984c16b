"""`hlofuse capture` of programs of a mapping: the process that compiles, with a stand-in for JAX in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ..running import Run

JAX = """
__version__ = "0.11.1"

class jit:
    def __init__(self, function): self.function = function
    def lower(self, *arguments): return self
    def compile(self): self.function()

class tree:
    leaves = staticmethod(list)
"""
PROGRAMS = '''
import os, re

DUMP = re.search(r"--xla_dump_to=(\\S+)", os.environ["XLA_FLAGS"])[1]
PIPELINE = "HLO_passes_after_layout_assignment"
INPUT = """HloModule jit_NAME

ENTRY e {
  p = f32[4]{0} parameter(0)
  n = f32[4]{0} negate(p)
  ROOT s = f32[4]{0} sine(n)
}
"""

def dump(name, ending, text=INPUT):
    with open(f"{DUMP}/module_0001.jit_{name}.{ending}.txt", "w") as file:
        file.write(text.replace("NAME", name))

def fuse(name):
    dump(name, "before_optimizations")
    dump(name, f"0001.{PIPELINE}.after_cse.before_fusion")
    dump(name, f"0002.{PIPELINE}.after_fusion.before_fusion-wrapper", INPUT + "// fused\\n")

def go_on(name):
    dump(name, "0003.simplification_after_layout_assignment.after_pipeline-start.before_algsimp")

def f():
    fuse("f")
    go_on("f")

def late():
    fuse("late")
    go_on("late")
    raise ValueError("no code for this")

def early():
    dump("early", "before_optimizations")
    raise ValueError("what is this?")

def aborts():
    os.abort()

def other_pipelines():
    dump("other_pipelines", "0001.other.after_pipeline-start.before_fusion")

def runs_things():  # while it is made
    fuse("on_the_way")
    go_on("on_the_way")
    return f, ()

def cannot_be_made():
    import nowhere_at_all

PROGRAMS = {p.__name__: (p, ()) for p in (f, late, early, aborts, other_pipelines)}
PROGRAMS |= {p.__name__: p for p in (runs_things, cannot_be_made)}
PROGRAMS["nonsense"] = 3
'''


@pytest.fixture
def capture(hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for package, text in {"jax": JAX, "jaxlib": "__version__ = '0.11.1'"}.items():
        folder = tmp_path / "packages" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(text)
    (tmp_path / "program.py").write_text(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))

    def run(program: str, *phrase: object) -> Any:
        return hlofuse("capture", program, "-o", "out", "--python", sys.executable, *phrase)

    return run


def test_each_program_of_a_mapping(capture: Any, tmp_path: Path) -> None:
    assert capture("program.py:PROGRAMS").status == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [m["name"] for m in manifest["modules"]] == ["f", "late", "on_the_way"]
    assert "--xla_dump_to=DIR " in manifest["flags"]
    assert (tmp_path / "out/f/after.hlo").read_text().endswith("// fused\n")
    errors = manifest["errors"]
    assert list(errors) == ["late", "early", "aborts", "cannot_be_made", "nonsense"]
    assert errors["late"] == "ValueError: no code for this"
    assert errors["early"] == "ValueError: what is this?"
    assert "was killed by signal 6" in errors["aborts"]
    assert "nowhere_at_all" in errors["cannot_be_made"]
    assert errors["nonsense"].startswith("TypeError: expected (function, arguments)")
    assert list(manifest["left_out"]) == ["early", "other_pipelines"]


def test_some_of_them(capture: Any, tmp_path: Path) -> None:
    assert capture("program.py:PROGRAMS", "--only", "late", "--only", "f").status == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["f", "late", "manifest.json"]


def test_an_xla_without_these_pipelines(capture: Any, tmp_path: Path) -> None:
    result = capture("program.py:other_pipelines")
    assert result.status == 2
    assert "no dump at the fusion input" in result.err
    assert not (tmp_path / "out").exists()


def test_a_capture_keeps_the_times_of_the_passes(hlofuse: Run, capture: Any, tmp_path: Path) -> None:
    assert capture("program.py:f").status == 0
    assert "No times" not in hlofuse("timeline", tmp_path / "out/f").out
