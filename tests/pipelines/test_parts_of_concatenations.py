"""Concatenations that simplification made of some operands of another one, for a slice of it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.parts_of_concatenations import (
    made_for_slices,
    with_slices_behind_parts,
    with_wholes_in_front,
)

_PADDED = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %left = f32[1]{0} slice(%p), slice={[7:8]}
  %concatenate.8.0 = f32[9]{0} concatenate(%left, %p), dimensions={0}
  %slice.0.0 = f32[8]{0} slice(%concatenate.8.0), slice={[0:8]}
  %exp = f32[8]{0} exponential(%slice.0.0)
  %right = f32[1]{0} slice(%p), slice={[0:1]}
  %concatenate.4.0 = f32[10]{0} concatenate(%left, %p, %right), dimensions={0}
  %first = f32[1]{0} slice(%concatenate.4.0), slice={[0:1]}
  %concatenate.6.0 = f32[11]{0} concatenate(%first, %concatenate.4.0), dimensions={0}
  %slice.1.0 = f32[8]{0} slice(%concatenate.6.0), slice={[0:8]}
  %last = f32[1]{0} slice(%concatenate.4.0), slice={[9:10]}
  %concatenate.7.0 = f32[11]{0} concatenate(%concatenate.4.0, %last), dimensions={0}
  %slice.2.0 = f32[8]{0} slice(%concatenate.7.0), slice={[3:11]}
  ROOT %tuple.1.0 = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%exp, %slice.1.0, %slice.2.0)
}
"""


def _makers(text: str, *, named: bool = False) -> dict[str, Maker]:
    entry = parse_module(text).entry
    found = made_for_slices(dict.fromkeys(entry, Maker.INLINER), frozenset(entry if named else ()))
    return {x.name: maker for x, maker in found.items()}


def test_parts_overlap_where_the_whole_is_gone_and_parts_of_parts_come_later() -> None:
    first = ["concatenate.6.0", "slice.1.0", "concatenate.7.0", "slice.2.0"]
    assert _makers(_PADDED) == {
        **dict.fromkeys(first, Maker.SIMPLIFIER),
        **dict.fromkeys(["concatenate.8.0", "slice.0.0"], Maker.SIMPLIFIER_AGAIN),
    }


def test_numbers_that_follow_the_text_tell_of_one_round() -> None:
    assert set(_makers(_PADDED.replace("concatenate.8.0", "concatenate.5.0")).values()) == {Maker.SIMPLIFIER}


def test_those_of_the_program_are_no_parts() -> None:
    assert _makers(_PADDED, named=True) == {}


def test_a_concatenation_that_something_else_reads_is_no_part() -> None:
    read = _PADDED.replace("exponential(%slice.0.0)", "add(%slice.0.0, %part)").replace(
        "  %exp", "  %part = f32[8]{0} slice(%concatenate.8.0), slice={[1:9]}\n  %exp"
    )
    assert "concatenate.8.0" not in _makers(read)


def test_a_slice_is_made_right_behind_its_part() -> None:
    entry = parse_module(_PADDED).entry
    by_name = {x.name: x for x in entry}
    order = [by_name[name] for name in ("concatenate.6.0", "concatenate.7.0", "slice.1.0", "slice.2.0")]
    made = [x.name for x in with_slices_behind_parts(order, frozenset())]
    assert made == ["concatenate.6.0", "slice.1.0", "concatenate.7.0", "slice.2.0"]


def test_what_a_whole_read_was_there_before_what_reads_a_slice_of_it() -> None:
    older = ("left", "exp", "right", "concatenate.4.0", "first", "last")
    order = [x for x in parse_module(_PADDED).entry if x.name in older]
    made = [x.name for x in with_wholes_in_front(order, frozenset())]
    assert made == ["left", "right", "concatenate.4.0", "first", "last", "exp"]
