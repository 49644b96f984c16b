"""What passes before and after fusion tell of layouts, loops, random numbers and copies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir import parse_module
from ..running import Run, lowered

FILTER = """HloModule m

ENTRY main {
  x = f32[4,16,16,8]{3,2,1,0} parameter(0)
  w = f32[3,3,8,8]{3,2,1,0} parameter(1)
  ROOT c = f32[4,16,16,8]{3,2,1,0} convolution(x, w), window={size=3x3 pad=1_1x1_1}, \
    dim_labels=b01f_01io->b01f
}
"""
NORM = """HloModule m

ENTRY main {
  x = f32[4,8,8,16]{3,2,1,0} parameter(0)
  s = f32[16]{0} parameter(1)
  m = f32[16]{0} parameter(2)
  ROOT n = f32[4,8,8,16]{3,2,1,0} batch-norm-inference(x, s, m, m, s), epsilon=0.001, feature_index=3
}
"""
BITS = """HloModule m

ENTRY main {
  k = u64[2]{0} parameter(0)
  r = (u64[2]{0}, u32[64]{0}) rng-bit-generator(k), algorithm=rng_philox
  ROOT b = u32[64]{0} get-tuple-element(r), index=1
}
"""
VECTOR = """HloModule m

ENTRY main {
  x = f32[512,8192]{1,0} parameter(0)
  v = f32[8192]{0} parameter(1)
  ROOT d = f32[512]{0} dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
LOOP = """HloModule m

body {
  p = (s32[], f32[64]{0}, f32[64]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[64]{0} get-tuple-element(p), index=1
  fixed = f32[64]{0} get-tuple-element(p), index=2
  sine = f32[64]{0} sine(fixed)
  sum = f32[64]{0} add(v, sine)
  ROOT t = (s32[], f32[64]{0}, f32[64]{0}) tuple(next, sum, fixed)
}

cond {
  q = (s32[], f32[64]{0}, f32[64]{0}) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  last = s32[] constant(TRIPS)
  ROOT less = pred[] compare(j, last), direction=LT
}

ENTRY main {
  a = f32[64]{0} parameter(0)
  b = f32[64]{0} parameter(1)
  zero = s32[] constant(0)
  begin = (s32[], f32[64]{0}, f32[64]{0}) tuple(zero, a, b)
  w = (s32[], f32[64]{0}, f32[64]{0}) while(begin), condition=cond, body=body
  ROOT r = f32[64]{0} get-tuple-element(w), index=1
}
"""


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
