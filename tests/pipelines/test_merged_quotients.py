"""Quotients of products that became one product in two rounds of simplification."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import makers_in_turn
from hlofuse.pipelines.likely_ids.merged_quotients import behind_quotients
from hlofuse.pipelines.likely_ids.simplification_rounds import in_rounds

_PRODUCT = """HloModule m

ENTRY %main {{
  %p = f32[8]{{0}} parameter(0)
  %constant.3.0 = f32[] constant({number})
  %broadcast.6.0 = f32[8]{{0}} broadcast(%constant.3.0), dimensions={{}}{spread_for}
  ROOT %multiply.1.0 = f32[8]{{0}} multiply(%p, %broadcast.6.0){of_quotient}
}}
"""
_OF_QUOTIENT = ', metadata={op_name="jit(f)/div"}'


def _makers(number: str, spread_for: str = _OF_QUOTIENT) -> list[Maker]:
    text = _PRODUCT.format(number=number, spread_for=spread_for, of_quotient=_OF_QUOTIENT)
    return [*makers_in_turn(parse_module(text).entry, frozenset()).makers.values()][1:]


def test_what_is_no_inverse_of_a_number_was_made_of_two() -> None:
    assert _makers("0.0909090862") == [Maker.SIMPLIFIER_AGAIN] * 2  # 0.1 / 1.1


@pytest.mark.parametrize("number", ["0.111111112", "0.015625", "1e+06", "0", "0.176776692"])
def test_an_inverse_was_made_the_first_time_around(number: str) -> None:
    assert _makers(number) == [Maker.SIMPLIFIER] * 2


def test_a_broadcast_that_was_not_made_for_the_quotient_tells_nothing() -> None:
    assert _makers("0.0909090862", "") == [Maker.SIMPLIFIER] * 2


def test_what_spreads_such_a_product_was_made_with_it() -> None:
    text = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %q = f32[4,8]{1,0} parameter(1)
  %constant.3.0 = f32[] constant(0.0909090862)
  %broadcast.6.0 = f32[8]{0} broadcast(%constant.3.0), dimensions={}, metadata={op_name="jit(f)/div"}
  %multiply.1.0 = f32[8]{0} multiply(%p, %broadcast.6.0), metadata={op_name="jit(f)/div"}
  %broadcast.7.0 = f32[4,8]{1,0} broadcast(%multiply.1.0), dimensions={1}, metadata={op_name="jit(f)/mul"}
  ROOT %mul.1.0 = f32[4,8]{1,0} multiply(%q, %broadcast.7.0), metadata={op_name="jit(f)/mul"}
}
"""
    entry = parse_module(text).entry
    assert makers_in_turn(entry, frozenset()).makers[entry.root.operands[1]] == Maker.SIMPLIFIER_AGAIN


def test_it_is_made_when_reshapes_have_been_moved_once() -> None:
    text = _PRODUCT.format(number="0.0909090862", spread_for=_OF_QUOTIENT, of_quotient=_OF_QUOTIENT)
    text = text.replace("  ROOT", "  %q = f32[8]{0} parameter(1)\n  %moved = f32[8]{0} negate(%q)\n  ROOT")
    made = [x for x in parse_module(text).entry if x.opcode not in ("parameter", "constant")]
    turns = [[x.name for x in turn] for turn in in_rounds(made) if turn]
    assert turns == [["moved"], ["broadcast.6.0", "multiply.1.0"]]


_MEAN = """HloModule m

ENTRY %main {{
  %p = f32[8,1]{{1,0}} parameter(0)
  %constant.3.0 = f32[] constant({number})
  %broadcast.6.0 = f32[8,1]{{1,0}} broadcast(%constant.3.0), dimensions={{}}, metadata={{op_name="f/mul"}}
  %multiply.1.0 = f32[8,1]{{1,0}} multiply(%p, %broadcast.6.0), metadata={{op_name="f/mul"}}
  %bitcast.1.0 = f32[8]{{0}} bitcast(%multiply.1.0)
  ROOT %broadcast.7.0 = f32[8,64]{{1,0}} broadcast(%bitcast.1.0), dimensions={{0}}
}}
"""


@pytest.mark.parametrize(("number", "made"), [("0.03125", Maker.SIMPLIFIER_AGAIN), ("2", Maker.SIMPLIFIER)])
def test_the_derivative_of_a_mean_of_squares_had_a_quotient_first(number: str, made: Maker) -> None:
    """2 / 64, for each of 64, is no number that somebody wrote; 2 is."""
    entry = parse_module(_MEAN.format(number=number)).entry
    makers = makers_in_turn(entry, frozenset()).makers
    assert [makers[x] for x in entry if x.opcode == "multiply"] == [made]


def test_a_product_that_was_of_a_quotient_is_made_behind_it() -> None:
    text = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %c = f32[] constant(0.375)
  %broadcast.1.0 = f32[8]{0} broadcast(%c), dimensions={}, metadata={op_name="jit(f)/mul"}
  %mul.1.0 = f32[8]{0} multiply(%p, %broadcast.1.0), metadata={op_name="jit(f)/mul"}
  %d = f32[] constant(0.125)
  %broadcast.2.0 = f32[8]{0} broadcast(%d), dimensions={}
  %multiply.3.0 = f32[8]{0} multiply(%p, %broadcast.2.0), metadata={op_name="jit(f)/div"}
  ROOT %add.1.0 = f32[8]{0} add(%mul.1.0, %multiply.3.0), metadata={op_name="jit(f)/add"}
}
"""
    made = [x for x in parse_module(text).entry if x.opcode in ("broadcast", "multiply")]
    names = [x.name for x in behind_quotients(made)]
    assert names == ["broadcast.2.0", "multiply.3.0", "broadcast.1.0", "mul.1.0"]
