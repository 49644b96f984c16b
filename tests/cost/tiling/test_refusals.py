"""Refusals quote operations as XLA's `HloInstruction::ToString` prints them, however the dump was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from ...fixtures import find_case

TEXT = find_case(Path(__file__).parent / "modules" / "h100_sxm.hlo", "sm_cat_red").text
FOLDED = (
    TEXT.replace("xs_0_.1: f32[512,384], xs_1_.1: f32[512,128]", "xs: (f32[512,384], f32[512,128])")
    .replace('  %xs_0_.1 = f32[512,384]{1,0} parameter(0), metadata={op_name="xs[0]"}\n', "")
    .replace(
        '  %xs_1_.1 = f32[512,128]{1,0} parameter(1), metadata={op_name="xs[1]"}\n',
        "  %xs = (f32[512,384]{1,0}, f32[512,128]{1,0}) parameter(0)\n",
    )
    .replace("add(%xs_0_.1,", "add(%xs#0,")
    .replace("multiply(%xs_1_.1,", "multiply(%xs#1,")
)
# The parameter before its first reader.
FIRST = "  %xs = (f32[512,384]{1,0}, f32[512,128]{1,0}) parameter(0)\n"
FOLDED = FOLDED.replace(FIRST, "").replace("  %constant.9.0", FIRST + "  %constant.9.0", 1)


@pytest.mark.parametrize(
    ("text", "operand"),
    [(TEXT, "%xs_1_.1"), (FOLDED, "%xs_1"), (TEXT.replace("%", ""), "%xs_1_.1")],
    ids=["as XLA dumps", "elements folded into operands", "no percent signs"],
)
def test_an_operation_is_quoted_in_the_default_way(text: str, operand: str) -> None:
    result = compile(parse_module(text), "gpu", device="h100_sxm")
    reasons = [e.reason or "" for p in result.passes for e in p.events if e.producer == "concatenate.1.0"]
    quoted = f"for HLO %mul.3.0 = f32[512,128]{{1,0}} multiply({operand}, %mul.2.0), metadata="
    assert any(quoted in r for r in reasons)
