"""Names and lines of what stands inside a call that is one kernel, a loop or a branch of the final module."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hlofuse.analysis.kernels import outermost_loops
from hlofuse.ir.text.reader import parse_module
from hlofuse.reports.common.names import launched_in
from hlofuse.reports.verify.verify import compare_final
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

FINAL = TEXTS["final"].replace(",\n    ", ", ")
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


@pytest.mark.parametrize(("name", "other", "agrees"), [("call", "call.4", True), ("called", "c", False)])
def test_only_the_computation_of_a_call_is_compared(name: str, other: str, agrees: bool) -> None:
    renamed = re.sub(rf"%{name}(?!\w)", f"%{other}", WHOLE)
    assert compare_final(parse_module(WHOLE), parse_module(renamed), "cpu").agrees == agrees
