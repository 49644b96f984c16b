"""`hlofuse capture --until-fusion`: the process that compiles, with a stand-in for JAX in it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hlofuse.capture.capturing import only_fusion
from hlofuse.capture.model import CaptureError

from ..running import Run

JAX = """
__version__ = "0.11.1"

class jit:
    def __init__(self, function): self.function = function
    def lower(self, *arguments): return self
    def compile(self): self.function()
"""
PROGRAMS = '''
import os, re, time

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
    time.sleep(600)  # generates code

def torn():  # what XLA writes once it is past fusion
    fuse("torn")
    dump("torn", "cpu_after_optimizations", "HloModule jit_to")
    open(f"{DUMP}/module_0001.jit_torn.debug_options", "w").close()
    go_on("torn")
    time.sleep(600)

def same(): f()

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

PROGRAMS = {p.__name__: (p, ()) for p in (f, same, late, early, aborts, other_pipelines)}
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
        return hlofuse("capture", program, "--until-fusion", "-o", "out", "--python", sys.executable, *phrase)

    return run


@pytest.mark.parametrize("name", ["f", "torn"])
def test_code_is_not_waited_for(capture: Any, tmp_path: Path, name: str) -> None:
    began = time.monotonic()
    result = capture(f"program.py:{name}")
    assert (result.status, result.err) == (0, "")
    assert time.monotonic() - began < 300
    assert sorted(p.name for p in (tmp_path / "out" / name).iterdir()) == [
        "01-fusion.hlo",
        "after.hlo",
        "before.hlo",
        "before_optimizations.hlo",
        "hlofuse.json",
    ]
    assert (tmp_path / "out" / name / "after.hlo").read_text().endswith("// fused\n")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["until_fusion"] is True
    assert "--xla_dump_to=DIR " in manifest["flags"]


def test_each_program_of_a_mapping_has_a_process(capture: Any, tmp_path: Path) -> None:
    result = capture("program.py:PROGRAMS", "-j", 3)
    assert result.status == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    # Equal names, and equal numbers of modules, are no trouble.
    assert [m["name"] for m in manifest["modules"]] == ["f", "f-2", "late", "f-3", "on_the_way"]
    errors = manifest["errors"]
    assert list(errors) == ["early", "aborts", "cannot_be_made", "nonsense"]
    assert errors["early"] == "ValueError: what is this?"
    assert "was killed by signal 6" in errors["aborts"]
    assert "nowhere_at_all" in errors["cannot_be_made"]
    assert errors["nonsense"].startswith("TypeError: expected (function, arguments)")
    assert list(manifest["left_out"]) == ["early", "other_pipelines"]


def test_some_of_them(capture: Any, tmp_path: Path) -> None:
    assert capture("program.py:PROGRAMS", "--only", "late", "--only", "same").status == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["f", "late", "manifest.json"]


def test_an_xla_without_these_pipelines(capture: Any, tmp_path: Path) -> None:
    result = capture("program.py:other_pipelines")
    assert result.status == 2
    assert "has no dump at the fusion input" in result.err
    assert "without --until-fusion to dump all passes" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        (["--until-fusion", "--target", "tpu"], "--until-fusion is not supported for target tpu"),
        (["-j", "2"], "--jobs needs --until-fusion"),
        (["--until-fusion", "--", "python", "train.py"], "--until-fusion cannot capture a running command"),
    ],
)
def test_wrong_calls(hlofuse: Run, capture: Any, text: list[str], attributes: str) -> None:
    result = hlofuse("capture", *text, *([] if "--" in text else ["program.py:f"]))
    assert result.status == 2
    assert attributes in " ".join(result.err.replace("│", "").split())


def test_a_capture_keeps_the_times_of_the_passes(hlofuse: Run, capture: Any, tmp_path: Path) -> None:
    assert capture("program.py:f").status == 0
    assert "No times" not in hlofuse("timeline", tmp_path / "out/f").out


def test_what_is_dumped() -> None:
    assert only_fusion("gpu") == "--xla_dump_hlo_pipeline_re=^(fusion|post-fusion.optimization)$"
    with pytest.raises(CaptureError):
        only_fusion("tpu")
