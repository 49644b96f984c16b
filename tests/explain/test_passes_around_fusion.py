"""What passes before and after fusion tell of layouts, loops, random numbers and copies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir import parse_module
from ..fixtures import companion_texts
from ..running import Run, lowered

TEXTS = companion_texts(__file__)

FILTER = TEXTS["filter"]
NORM = TEXTS["norm"]
BITS = TEXTS["bits"]
VECTOR = TEXTS["vector"]
LOOP = TEXTS["loop"]


@pytest.mark.parametrize(
    ("text", "target", "code", "added", "reason"),
    [
        (
            FILTER,
            "gpu",
            "RW042",
            ("transpose.1",),
            "w is laid out as {3,2,1,0}, and cudnn-conv takes {2,1,0,3}",
        ),
        (NORM, "gpu", "RW031", None, "A batch normalization becomes plain operations"),
        (BITS, "gpu", "RW032", None, "Random bits become the arithmetic of their generator"),
        (LOOP.replace("TRIPS", "1"), "cpu", "RW050", ("sine.1", "sum.1"), "w runs once"),
        (LOOP.replace("TRIPS", "9"), "cpu", "RW051", None, "sine computes the same in each iteration of w"),
    ],
)
def test_a_pass_before_fusion_tells(
    text: str, target: str, code: str, added: tuple[str, ...] | None, reason: str
) -> None:
    begun = lowered(parse_module(text), target, load_device("h100_sxm") if target == "gpu" else None)
    (event,) = (e for e in begun.events if e.rule == code)
    assert event.reason == reason
    assert event.added
    assert added is None or event.added == added
    assert all(begun.module.find(name) for name in event.added)


def test_a_small_loop_on_cpu_is_one_kernel(tmp_path: Path, hlofuse: Run) -> None:
    (tmp_path / "m.hlo").write_text(LOOP.replace("TRIPS", "9"))
    how = ("--target", "cpu", "--stage", "before-optimizations", "--format", "json")
    report = json.loads(hlofuse("explain", tmp_path / "m.hlo", *how).out)
    (loops,) = (p["rewritten"] for p in report["after_fusion"] if p["name"] == "small-while-loop-hoisting")
    assert [(r["rule"], r["from"]) for r in loops] == [("RW052", ["while.1"])]
    moved = [r["rule"] for p in report["before_fusion"] for r in p["rewritten"]]
    assert moved == ["RW051"]


@pytest.mark.parametrize("name", ["f.py:3", "f.py:9", "sum"])
def test_a_line_of_a_small_loop_is_in_its_kernel(tmp_path: Path, hlofuse: Run, name: str) -> None:
    """The line of an operation in the body, and the line of the loop itself."""
    text = LOOP.replace("TRIPS", "9")
    text = text.replace("add(v, sine)", 'add(v, sine), metadata={source_file="f.py" source_line=3}')
    text = text.replace("body=body", 'body=body, metadata={source_file="f.py" source_line=9}')
    (tmp_path / "m.hlo").write_text(text)
    how = ("--target", "cpu", "--stage", "before-optimizations", "--format", "json")
    everything = json.loads(hlofuse("kernels", tmp_path / "m.hlo", *how).out)["kernels"]
    calls = [k["name"] for k in everything if k["opcode"] == "call"]
    for command in ("explain", "kernels"):
        found = json.loads(hlofuse(command, tmp_path / "m.hlo", name, *how).out)
        assert [k["name"] for k in found["kernels"]] == calls
    text = " ".join(hlofuse("why", tmp_path / "m.hlo", name, *how[:-2], columns=120).out.split())
    assert name != "f.py:3" or f"runs inside {calls[0]}, which XLA compiles into one kernel." in text
    assert "kernel of its own" not in text


def test_why_tells_what_a_copy_is_for(tmp_path: Path, hlofuse: Run) -> None:
    text = "HloModule m\n\nENTRY main {\n  ROOT a = f32[64]{0} parameter(0)\n}\n"
    (tmp_path / "m.hlo").write_text(text)
    out = hlofuse("why", tmp_path / "m.hlo", "copy", "--target", "cpu", "--assume-input").out
    assert ", added by a pass after fusion; it copies a." in out
    assert "copy was created by copy-insertion from a: " in out
    assert "(RW040)" in out


def test_why_of_a_line_names_the_copies_that_passes_add_for_it(tmp_path: Path, hlofuse: Run) -> None:
    """A pass after fusion adds the copy: it has no line, and runs for its reader's."""
    text = TEXTS["mirror"].replace("METADATA", 'metadata={source_file="f.py" source_line=3}')
    (tmp_path / "m.hlo").write_text(text)
    out = hlofuse("why", tmp_path / "m.hlo", "f.py:3", "--target", "cpu", "--assume-input", columns=120).out
    assert "f.py:3: operations in 2 of 6 kernels" in out
    assert ", added by a pass after fusion; it copies " in out
