"""Broadcasts that were made with what reads them, or for what was moved."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.spread_for_readers import (
    spread_as_written,
    spread_for_made_again,
    spread_with_reader,
)

_TEXT = """HloModule m

ENTRY %main {
  %p = f32[8,1]{1,0} parameter(0)
  %q = f32[8]{0} parameter(1)
  %c = f32[] constant(3)
  %d = f32[] constant(4)
  %number.1 = f32[8]{0} broadcast(%c), dimensions={}
  %moved.1 = f32[8]{0} multiply(%q, %number.1), metadata={op_name="jit(f)/div"}
  %old.1 = f32[8]{0} subtract(%q, %number.1), metadata={op_name="jit(f)/sub"}
  %number.2 = f32[8]{0} broadcast(%d), dimensions={}
  %old.2 = f32[8]{0} subtract(%old.1, %number.2), metadata={op_name="jit(f)/sub"}
  %moved.2 = f32[8]{0} multiply(%moved.1, %number.2), metadata={op_name="jit(f)/div"}
  %bitcast.1 = f32[8]{0} bitcast(%p)
  %broadcast.5 = f32[8,8]{1,0} broadcast(%bitcast.1), dimensions={0}, metadata={op_name="jit(f)/dot"}
  %broadcast.6 = f32[8,8]{1,0} broadcast(%moved.2), dimensions={1}, metadata={op_name="jit(f)/dot"}
  %multiply.5 = f32[8,8]{1,0} multiply(%broadcast.5, %broadcast.6), metadata={op_name="jit(f)/dot"}
  ROOT %tuple = (f32[8]{0}, f32[8,8]{1,0}) tuple(%old.2, %multiply.5)
}
"""
_BY_NAME = {x.name: x for x in parse_module(_TEXT).entry}
_MAKERS = {
    _BY_NAME[name]: maker
    for name, maker in {
        "number.1": Maker.SIMPLIFIER,
        "moved.1": Maker.SIMPLIFIER_AGAIN,
        "old.1": Maker.FRONT_END,
        "number.2": Maker.SIMPLIFIER,
        "old.2": Maker.FRONT_END,
        "moved.2": Maker.SIMPLIFIER_AGAIN,
        "bitcast.1": Maker.ANY,
        "broadcast.5": Maker.SIMPLIFIER_AGAIN,
        "broadcast.6": Maker.SIMPLIFIER_AGAIN,
        "multiply.5": Maker.SIMPLIFIER,
    }.items()
}


def test_a_number_is_of_the_first_that_reads_it() -> None:
    """What moved reads a number of its own, and of equal ones CSE keeps the one that it meets first."""
    assert [x.name for x in spread_for_made_again(_MAKERS)] == ["number.1"]


def test_what_reads_only_what_was_computed_sooner_was_not_moved() -> None:
    """The sum of two numbers that is added in its place was made with its number."""
    sooner = {_BY_NAME["number.2"]: Maker.SIMPLIFIER, _BY_NAME["old.1"]: Maker.FRONT_END}
    assert not spread_for_made_again({**sooner, _BY_NAME["old.2"]: Maker.SIMPLIFIER_AGAIN})
    reduced = {_BY_NAME["number.2"]: Maker.SIMPLIFIER, _BY_NAME["old.1"]: Maker.SIMPLIFIER_AGAIN}
    assert spread_for_made_again({**reduced, _BY_NAME["old.2"]: Maker.SIMPLIFIER_AGAIN})


@pytest.mark.parametrize(("reader", "expected"), [(Maker.SIMPLIFIER, ["broadcast.5"]), (Maker.FRONT_END, [])])
def test_the_side_of_an_outer_product_was_spread_with_it(reader: Maker, expected: list[str]) -> None:
    """Of what was moved meanwhile it was spread again."""
    makers = {**_MAKERS, _BY_NAME["multiply.5"]: reader}
    assert [x.name for x in spread_with_reader(makers)] == expected


_QUOTIENT = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %multiply.1 = f32[8]{0} multiply(%p, %p)
  %spread.1.0 = f32[8,4]{1,0} broadcast(%multiply.1), dimensions={0}, metadata={op_name="f/broadcast_in_dim"}
  ROOT %negate.1 = f32[8,4]{1,0} negate(%spread.1.0)
}
"""


def test_what_spreads_a_quotient_that_became_a_product_is_the_programs() -> None:
    """If ReshapeMover moved the product, there was a dimension of size one, and both are new."""
    by_name = {x.name: x for x in parse_module(_QUOTIENT).entry}
    product, spread = by_name["multiply.1"], by_name["spread.1.0"]
    assert spread_as_written({product: Maker.SIMPLIFIER, spread: Maker.SIMPLIFIER_AGAIN}) == [spread]
    assert not spread_as_written({product: Maker.SIMPLIFIER_AGAIN, spread: Maker.SIMPLIFIER_AGAIN})
