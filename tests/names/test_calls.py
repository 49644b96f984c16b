"""Names and lines of what stands inside a call that is one kernel, a loop or a branch of the final module."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.analysis.kernels import outermost_loops
from hlofuse.ir.text.reader import parse_module
from hlofuse.reports.common.names import launched_in
from ..running import Run

FINAL = """HloModule jit_f, is_scheduled=true

%inner (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %sine = f32[8]{0} sine(%x), metadata={source_file="f.py" source_line=3}
  ROOT %r = (s32[], f32[8]{0}) tuple(%i, %sine)
}

%condition (q: (s32[], f32[8])) -> pred[] {
  %q = (s32[], f32[8]{0}) parameter(0)
  %n = s32[] get-tuple-element(%q), index=0
  %four = s32[] constant(4), metadata={source_file="f.py" source_line=5}
  ROOT %less = pred[] compare(%n, %four), direction=LT
}

%called (c: (s32[], f32[8])) -> (s32[], f32[8]) {
  %c = (s32[], f32[8]{0}) parameter(0)
  ROOT %loop = (s32[], f32[8]{0}) while(%c), condition=%condition, body=%inner,
    metadata={source_file="f.py" source_line=4}
}

%branch (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  ROOT %tanh = f32[8]{0} tanh(%b), metadata={source_file="f.py" source_line=8}
}

ENTRY %main (a: (s32[], f32[8]), which: s32[]) -> f32[8] {
  %a = (s32[], f32[8]{0}) parameter(0)
  %which = s32[] parameter(1)
  %call = (s32[], f32[8]{0}) call(%a), to_apply=%called
  %y = f32[8]{0} get-tuple-element(%call), index=1
  ROOT %choose = f32[8]{0} conditional(%which, %y, %y), branch_computations={%branch, %branch},
    metadata={source_file="f.py" source_line=7}
}
""".replace(",\n    ", ", ")
"""A call that XLA:CPU could compile whole, and a conditional."""
WHOLE = FINAL.replace("to_apply=%called", 'to_apply=%called, frontend_attributes={xla_cpu_small_call="true"}')


@pytest.mark.parametrize(
    ("name", "kernels", "kernels_of_one"),
    [
        ("f.py:3", {"sine"}, {"call"}),
        ("sine", {"sine"}, {"call"}),
        ("f.py:4", {"sine", "less"}, {"call"}),
        ("f.py:5", None, {"call"}),
        ("f.py:7", {"tanh"}, {"tanh"}),
        ("f.py:8", {"tanh"}, {"tanh"}),
        ("four", None, {"call"}),
    ],
)
def test_what_stands_in_a_call_is_in_its_kernel(
    hlofuse: Run, tmp_path: Path, name: str, kernels: set[str] | None, kernels_of_one: set[str]
) -> None:
    """Of a loop or a branch that is no kernel it is what they launch; a constant in them is in none."""
    for text, expected in ((FINAL, kernels), (WHOLE, kernels_of_one)):
        file = tmp_path / "final.hlo"
        file.write_text(text)
        for command in ("kernels", "explain"):
            result = hlofuse(command, file, name, "--target", "cpu", "--format", "json")
            if expected is None:
                assert (result.status, "has no kernel for" in result.err) == (2, True)
            else:
                assert {k["name"] for k in json.loads(result.out)["kernels"]} == expected
        if expected is not None:
            assert launched_in(parse_module(text, "f"), name) == expected


def test_a_loop_in_a_call_that_is_one_kernel_launches_nothing() -> None:
    """A loop of kernels is one whose turns launch; the call is a single launch."""
    assert [loop.name for loop in outermost_loops(parse_module(FINAL, "f"))] == ["loop"]
    assert outermost_loops(parse_module(WHOLE, "f")) == ()
