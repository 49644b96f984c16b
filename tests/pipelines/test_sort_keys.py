"""Keys of a sort by a library, in the order in which SortRewriter makes them."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.sort_keys import with_keys_as_made

_KEYS = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %nan = f32[] constant(nan)
  %nans = f32[8]{0} broadcast(%nan), dimensions={}
  %zero = f32[] constant(0)
  %zeros = f32[8]{0} broadcast(%zero), dimensions={}
  %first = u32[] constant(2147483648)
  %firsts = u32[8]{0} broadcast(%first), dimensions={}
  %is_nan = pred[8]{0} compare(%p, %p), direction=NE
  %is_zero = pred[8]{0} compare(%p, %zeros), direction=EQ
  %alike = f32[8]{0} select(%is_zero, %zeros, %p)
  %known = f32[8]{0} select(%is_nan, %nans, %alike)
  %is_negative = pred[8]{0} compare(%known, %zeros), direction=LT
  %bits = u32[8]{0} bitcast(%known)
  %not = u32[8]{0} not(%bits)
  %xor = u32[8]{0} xor(%firsts, %bits)
  ROOT %key = u32[8]{0} select(%is_negative, %not, %xor)
}
"""


def _order(text: str) -> list[str]:
    made = [x for x in parse_module(text).entry if x.opcode not in ("parameter", "bitcast")]
    return [x.name for x in with_keys_as_made(made)]


def test_a_key_is_made_of_zeros_then_of_what_is_no_number_then_of_its_bits() -> None:
    zeros = ["zero", "zeros", "is_zero", "alike"]
    nans = ["nan", "nans", "is_nan", "known"]
    assert _order(_KEYS) == [*zeros, *nans, "is_negative", "first", "firsts", "xor", "not", "key"]


def test_what_chooses_the_other_way_around_is_no_key() -> None:
    other = _KEYS.replace("select(%is_negative, %not, %xor)", "select(%is_negative, %xor, %not)")
    assert _order(other)[:4] == ["nan", "nans", "zero", "zeros"]
