"""Which bitcasts had another one between them and what they read, which LayoutNormalization had put there."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.merged_bitcasts import is_merged_for_reduction, reads_normalized

_NAMED = ', metadata={op_name="jit(f)/reshape"}'
_SUM = """%sum {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}"""


@pytest.mark.parametrize(
    ("shape", "given", "is_merged"),
    [
        ("f32[4,2,1]", "bitcast", True),
        ("f32[1,4,2]", "bitcast", False),
        ("f32[4,2,1]", "parameter", False),
        ("f32[4,2,1]", "negate", False),
    ],
    ids=["moved", "there before", "of an argument", "of what is computed"],
)
def test_a_one_moved_in_front_of_what_was_reshaped_was_elsewhere_in_the_program(
    shape: str, given: str, is_merged: bool
) -> None:
    """So there was a bitcast behind the transposition, with which the program's own was merged."""
    argument = {"bitcast": "f32[8]", "negate": shape, "parameter": shape}[given]
    made = "" if given == "parameter" else f"%p.1 = {shape} {given}(%p)"
    body = f"""  %p = {argument} parameter(0)
  {made}
  %transpose.1.0 = f32[1,2,4] transpose({"%p.1" if made else "%p"}), dimensions={{0,1,2}}
  ROOT %bitcast.2.0 = f32[8] bitcast(%transpose.1.0){_NAMED}"""
    root = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry.root
    assert reads_normalized(root, frozenset()) == is_merged


@pytest.mark.parametrize(
    ("given", "is_told"), [("f32[4,1]{0,1}", True), ("f32[4]{0}", False)], ids=["column", "row"]
)
def test_a_row_that_was_a_column_was_turned_behind_what_is_computed(given: str, is_told: bool) -> None:
    body = f"""  %p = {given} parameter(0)
  %bitcast.1.0 = f32[1,4] bitcast(%p)
  %multiply.1.0 = f32[1,4] multiply(%bitcast.1.0, %bitcast.1.0)
  ROOT %bitcast.2.0 = f32[4] bitcast(%multiply.1.0)"""
    root = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry.root
    assert reads_normalized(root, frozenset(root.operands)) == is_told


@pytest.mark.parametrize("source", ["add", "bitcast"])
def test_what_is_narrow_between_two_wide_ones_was_merged_if_a_product_gave_it(source: str) -> None:
    """FloatNormalization put a bitcast behind a product that it made wide."""
    operands = "%p, %p" if source == "add" else "%p"
    body = f"""  %p = f32[8,16] parameter(0)
  %zero = f32[] constant(0)
  %{source}.9.0 = f32[8,16] {source}({operands})
  %convert.1.0 = bf16[8,16] convert(%{source}.9.0)
  %bitcast.2.0 = bf16[8,4,4] bitcast(%convert.1.0)
  %convert.2.0 = f32[8,4,4] convert(%bitcast.2.0)
  ROOT %reduce.1.0 = f32[8,4] reduce(%convert.2.0, %zero), dimensions={{2}}, to_apply=%sum"""
    entry = parse_module(f"HloModule m\n\n{_SUM}\n\nENTRY %main {{\n{body}\n}}\n").entry
    split = next(x for x in entry if x.name == "bitcast.2.0")
    assert is_merged_for_reduction(split, False, frozenset()) == (source == "bitcast")


def test_what_was_made_narrow_again_is_as_it_had_been_normalized() -> None:
    body = """  %p = f32[2,3,1,1] parameter(0)
  %negate.1.0 = f32[2,3,1,1] negate(%p)
  %convert.1.0 = bf16[2,3,1,1] convert(%negate.1.0)
  ROOT %bitcast.2.0 = bf16[2,3] bitcast(%convert.1.0)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    negated = frozenset(x for x in entry if x.opcode == "negate")
    assert reads_normalized(entry.root, negated)
    assert not reads_normalized(entry.root, frozenset())
