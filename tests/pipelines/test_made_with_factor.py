"""Products that AlgebraicSimplifier made together with what it spread for them."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.made_with_factor import behind_factors, made_with_factor
from hlofuse.pipelines.likely_ids.maker import Maker

from .made import text_of

_PARAMETERS = """  %p = f32[8,4]{1,0} parameter(0)
  %q = f32[8]{0} parameter(1)
  %n = f32[] parameter(2)
  %constant.1.0 = f32[] constant(0.3)
  %zero = f32[] constant(0)"""
_OF = 'metadata={op_name="jit(f)/mul"}'


def _made(factor: str, *lines: str, later: Maker = Maker.SIMPLIFIER_AGAIN) -> dict[str, Maker]:
    """Of what seems to be of the first turn, where numbers tell that the `factor` is `later`."""
    entry = parse_module(text_of(lines, _PARAMETERS)).entry
    told = {x: Maker.SIMPLIFIER for x in entry if x.opcode != "parameter"}
    makers = {x: later if x.name == factor else maker for x, maker in told.items()}
    return {x.name: maker for x, maker in made_with_factor(makers, told).items()}


def test_a_product_is_as_young_as_the_number_that_was_spread_for_it() -> None:
    spread = f"%broadcast.6.0 = f32[8,4]{{1,0}} broadcast(%constant.1.0), dimensions={{}}, {_OF}"
    product = f"%mul.3.0 = f32[8,4]{{1,0}} multiply(%p, %broadcast.6.0), {_OF}"
    assert _made("broadcast.6.0", spread, product) == {"mul.3.0": Maker.SIMPLIFIER_AGAIN}
    assert (
        _made("broadcast.6.0", spread, product, later=Maker.LAYOUT_NORMALIZATION) == {}
    )  # a name of its own
    another = product.replace(")/mul", ")/div")  # who the number was spread for is gone
    assert _made("broadcast.6.0", spread, another) == {}
    given = spread.replace("%constant.1.0", "%n")  # a reshape of that went into the broadcast
    assert _made("broadcast.6.0", given, product) == {}


def test_what_cse_gave_the_same_number_is_as_young() -> None:
    spread = f"%broadcast.6.0 = f32[8,4]{{1,0}} broadcast(%constant.1.0), dimensions={{}}, {_OF}"
    product = f"%mul.3.0 = f32[8,4]{{1,0}} multiply(%p, %broadcast.6.0), {_OF}"
    other = '%mul.4.0 = f32[8,4]{1,0} multiply(%mul.3.0, %broadcast.6.0), metadata={op_name="jit(f)/g/mul"}'
    assert [*_made("broadcast.6.0", spread, product, other)] == ["mul.3.0", "mul.4.0"]


def test_a_product_of_vectors_is_as_young_as_what_it_multiplies() -> None:
    of = 'metadata={op_name="jit(f)/dot_general"}'
    lines = (
        f"%broadcast.6.0 = f32[8,4]{{1,0}} broadcast(%q), dimensions={{0}}, {of}",
        f"%multiply.3.0 = f32[8,4]{{1,0}} multiply(%p, %broadcast.6.0), {of}",
        f"%reduce.1.0 = f32[4]{{0}} reduce(%multiply.3.0, %zero), dimensions={{0}}, to_apply=%region, {of}",
    )
    made = _made("broadcast.6.0", *lines, later=Maker.LAYOUT_NORMALIZATION)
    assert made == dict.fromkeys(("multiply.3.0", "reduce.1.0"), Maker.LAYOUT_NORMALIZATION)


def test_what_only_got_a_wide_number_is_no_younger() -> None:
    """A convert moved through the broadcast of a number, behind float normalization."""
    lines = (
        "%half = f16[] constant(0.3)",
        "%convert.1.0 = f32[] convert(%half)",
        f"%broadcast.6.0 = f32[8,4]{{1,0}} broadcast(%convert.1.0), dimensions={{}}, {_OF}",
        f"%mul.3.0 = f32[8,4]{{1,0}} multiply(%p, %broadcast.6.0), {_OF}",
    )
    assert _made("broadcast.6.0", *lines, later=Maker.SIMPLIFIER_LAST) == {}


@pytest.mark.parametrize("is_wide", [False, True])
def test_the_last_time_around_two_factors_become_one_before_they_are_spread(is_wide: bool) -> None:
    factor = "%broadcast.5.0" if not is_wide else "%convert.5.0"
    lines = (
        f"%broadcast.5.0 = f32[8]{{0}} broadcast(%constant.1.0), dimensions={{}}, {_OF}",
        "%convert.5.0 = f32[8]{0} convert(%broadcast.5.0)",
        f"%multiply.7.0 = f32[8]{{0}} multiply(%q, {factor}), {_OF}",
        f"%broadcast.6.0 = f32[8,4]{{1,0}} broadcast(%multiply.7.0), dimensions={{0}}, {_OF}",
        f"%mul.3.0 = f32[8,4]{{1,0}} multiply(%p, %broadcast.6.0), {_OF}",
    )
    made = _made("broadcast.6.0", *lines, later=Maker.SIMPLIFIER_LAST)
    last = dict.fromkeys(("mul.3.0", "multiply.7.0"), Maker.SIMPLIFIER_LAST)
    assert made == ({} if is_wide else last)


@pytest.mark.parametrize(("number", "path"), [("0.3", "mul"), ("0.0909090862", "div")])
def test_it_stands_right_behind_the_number(number: str, path: str) -> None:
    """So does a quotient, 0.1 / 1.1, that became a product when that had been folded."""
    of = f'metadata={{op_name="jit(f)/{path}"}}'
    text = f"""HloModule m

ENTRY %main {{
  %p = f32[8]{{0}} parameter(0)
  %constant.1.0 = f32[] constant({number})
  %broadcast.6.0 = f32[8]{{0}} broadcast(%constant.1.0), dimensions={{}}, {of}
  %multiply.3.0 = f32[8]{{0}} multiply(%p, %broadcast.6.0), {of}
  ROOT %neg.1.0 = f32[8]{{0}} negate(%multiply.3.0)
}}
"""
    *_, spread, product, root = parse_module(text).entry
    assert behind_factors([product, root, spread], {product}) == [root, spread, product]
    behind = path == "div"
    assert (behind_factors([product, root, spread], ()) == [root, spread, product]) == behind
