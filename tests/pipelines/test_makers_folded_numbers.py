"""Who made an instruction last: numbers that passes folded of others."""

from __future__ import annotations

import pytest

from hlofuse.pipelines.likely_ids.maker import Maker

from .made import MUL, maker, op


def test_a_quotient_that_was_divided_once_more() -> None:
    """a / b / c became a / (b * c)."""
    lines = [
        "%multiply.1.0 = f32[8]{0} multiply(%p, %p)",
        "%div.4.0 = f32[8]{0} divide(%p, %DIVISOR), " + op("div"),
    ]
    assert maker("div.4.0", lines[0], lines[1].replace("DIVISOR", "multiply.1.0")) == Maker.SIMPLIFIER
    assert maker("div.4.0", MUL, lines[1].replace("DIVISOR", "mul.5.0")) == Maker.FRONT_END


def test_two_constant_factors_that_became_one() -> None:
    constant = "%constant.4.0 = f32[] constant(2)"
    product = f"%mul.6.0 = f32[8]{{0}} multiply(%mul.5.0, %broadcast.3.0), {op('mul')}"
    broadcast = "%broadcast.3.0 = f32[8]{0} broadcast(%constant.4.0), dimensions={}"
    assert maker("mul.6.0", MUL, constant, f"{broadcast}, {op('mul')}", product) == Maker.SIMPLIFIER
    assert maker("mul.6.0", MUL, constant, broadcast, product) == Maker.FRONT_END


def test_a_multiple_of_a_mean_was_of_two_factors() -> None:
    """The quotient between the sum and it is gone, and its divisor with it."""
    constants = ["%constant.1.0 = f32[] constant(2)", "%constant.9.0 = f32[] constant(3)"]
    spread = "%broadcast.9.0 = f32[8]{0} broadcast(%constant.9.0), dimensions={}"
    broadcast = "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}"
    total = "%reduce_sum.5.0 = f32[8]{0} reduce(%q, %zero), dimensions={1}, to_apply=%region, " + op("sum")
    product = f"%mul.6.0 = f32[8]{{0}} multiply(%reduce_sum.5.0, %broadcast.1.0), {op('mul')}"
    added = f"%add.5.0 = f32[8]{{0}} add(%mul.6.0, %broadcast.9.0), {op('add')}"
    lines = [*constants, spread, broadcast, total]
    assert maker("mul.6.0", *lines, product, added) == Maker.SIMPLIFIER
    alone = product.replace("%reduce_sum.5.0", "%p")
    assert maker("mul.6.0", *lines, alone, added) == Maker.FRONT_END
    # Nothing was folded into what is computed.
    root = f"%sqrt.1.0 = f32[] sqrt(%constant.1.0), {op('sqrt')}"
    computed = [*constants, root, spread, broadcast.replace("%constant.1.0", "%sqrt.1.0"), total]
    assert maker("mul.6.0", *computed, product, added) == Maker.FRONT_END


@pytest.mark.parametrize(
    ("path", "squared", "expected"),
    [
        ("jit(_var)", "square", Maker.SIMPLIFIER_AGAIN),
        ("jvp(jit(_var))", "square", Maker.SIMPLIFIER_AGAIN),
        ("jit(_var)", "mul", Maker.SIMPLIFIER),  # the mean, of as many as there are
    ],
)
def test_a_variance_is_divided_by_a_folded_number(path: str, squared: str, expected: Maker) -> None:
    square = f"%square.1.0 = f32[8,4]{{1,0}} multiply(%q, %q), {op(f'{path}/{squared}')}"
    total = "%reduce_sum.1.0 = f32[8]{0} reduce(%square.1.0, %zero), dimensions={1}, to_apply=%region"
    number = "%constant.1 = f32[] constant(0.125)"
    spread = "%broadcast.1 = f32[8]{0} broadcast(%constant.1), dimensions={}"
    product = f"%multiply.1 = f32[8]{{0}} multiply(%reduce_sum.1.0, %broadcast.1), {op(f'{path}/div')}"
    lines = (square, f"{total}, {op(f'{path}/reduce_sum')}", number, spread, product)
    assert maker("multiply.1", MUL, *lines) == expected


@pytest.mark.parametrize("opcode", ["and", "negate", "select"])
def test_remainders_of_powers_of_two_are_seen_when_numbers_are_folded(opcode: str) -> None:
    operands = {"and": "%i, %i", "negate": "%i", "select": "%c, %i, %i"}[opcode]
    lines = (
        "%c = pred[8]{0} constant({1,0,1,0,1,0,1,0})",
        "%i = s32[8]{0} constant({1,2,3,4,5,6,7,8})",
        f"%{opcode}.1.0 = s32[8]{{0}} {opcode}({operands}), {op('jit(remainder)/rem')}",
    )
    assert maker(f"{opcode}.1.0", *lines) == Maker.SIMPLIFIER_AGAIN


@pytest.mark.parametrize(
    ("name", "expected"), [("subtract.1", Maker.SIMPLIFIER_AGAIN), ("sub.5.0", Maker.FRONT_END)]
)
def test_a_loop_that_goes_backwards_counts_from_a_folded_number(name: str, expected: Maker) -> None:
    lines = (
        "%last = s32[] constant(7)",
        "%i = s32[] parameter(2)",
        f"%{name} = s32[] subtract(%last, %i), {op('sub')}",
    )
    assert maker(name, *lines) == expected


def test_a_factor_that_was_converted_as_the_front_end_spread_it_is_no_merged_one() -> None:
    number = f"%number.1.0 = f32[] constant(2), {op('mul')}"
    spread = f"%mul.4.0 = f32[8]{{0}} broadcast(%number.1.0), dimensions={{}}, {op('mul')}"
    lines = (
        "%convert.1.0 = f32[] convert(%number.1.0)",
        f"%broadcast.1.0 = f32[8]{{0}} broadcast(%convert.1.0), dimensions={{}}, {op('mul')}",
        f"%mul.5.0 = f32[8]{{0}} multiply(%p, %broadcast.1.0), {op('mul')}",
    )
    assert maker("mul.5.0", number, *lines) == Maker.SIMPLIFIER
    assert maker("mul.5.0", number, spread, *lines) == Maker.FRONT_END


@pytest.mark.parametrize(("number", "expected"), [(1, Maker.SIMPLIFIER), (4, Maker.FRONT_END)])
def test_a_product_by_a_number_that_was_folded_of_two_is_new(number: int, expected: Maker) -> None:
    """It took the name of what it replaced. The front end's numbers have greater numbers in their names."""
    lines = [
        "%constant.3.0 = f32[] constant(3)",
        "%constant.4.0 = f32[] constant(4)",
        "%constant.1.0 = f32[] constant(1)",
        f"%log.2.0 = f32[] log(%constant.3.0), {op('log')}",
        f"%mul.5.0 = f32[] multiply(%log.2.0, %constant.{number}.0), {op('mul')}",
    ]
    assert maker("mul.5.0", *lines) == expected


@pytest.mark.parametrize(("number", "expected"), [(99, Maker.SIMPLIFIER), (4, Maker.FRONT_END)])
def test_a_sum_with_a_number_that_was_folded_of_two_is_new(number: int, expected: Maker) -> None:
    lines = [
        "%constant.3.0 = s32[] constant(3)",
        "%constant.4.0 = s32[] constant(4)",
        "%constant.99.0 = s32[] constant(1)",
        f"%not.2.0 = s32[] not(%constant.3.0), {op('not')}",
        f"%add.5.0 = s32[] add(%not.2.0, %constant.{number}.0), {op('add')}",
    ]
    assert maker("add.5.0", *lines) == expected


@pytest.mark.parametrize(("path", "expected"), [("sub", Maker.SIMPLIFIER_AGAIN), ("add", Maker.SIMPLIFIER)])
def test_a_number_that_was_subtracted_first_had_to_be_folded(path: str, expected: Maker) -> None:
    lines = [
        *(f"%constant.{k}.0 = s32[] constant({k})" for k in (3, 4, 5)),
        "%constant.98.0 = s32[] constant(-1)",
        "%constant.99.0 = s32[] constant(7)",
        f"%not.2.0 = s32[] not(%constant.3.0), {op('not')}",
        f"%add.4.0 = s32[] add(%not.2.0, %constant.98.0), {op(path)}",
        f"%add.5.0 = s32[] add(%not.2.0, %constant.99.0), {op('add')}",
        "%t = (s32[], s32[]) tuple(%add.4.0, %add.5.0)",
    ]
    assert maker("add.5.0", *lines) == expected


def test_where_a_slice_begins_had_to_be_folded() -> None:
    line = f"%slice.5.0 = f32[1]{{0}} slice(%p), slice={{[3:4]}}, {op('dynamic_slice')}"
    assert maker("slice.5.0", line) == Maker.SIMPLIFIER_AGAIN
    assert maker("slice.5.0", line.replace("dynamic_slice", "split")) == Maker.SIMPLIFIER


@pytest.mark.parametrize(("path", "expected"), [("mul", Maker.INLINER), ("", Maker.SIMPLIFIER)])
def test_a_number_that_the_program_spreads_was_not_folded_of_two(path: str, expected: Maker) -> None:
    """Of a product by two numbers one is left, which nobody spreads by the name of an operation."""
    product = op("jit(g)/mul")
    name = f"{path or 'broadcast'}.7.0"
    lines = [
        f"%three = f32[] constant(3), {product}",
        f"%{name} = f32[4]{{0}} broadcast(%three), dimensions={{}}, {product}",
        f"%broadcast.9.0 = f32[8]{{0}} broadcast(%three), dimensions={{}}, {product}",
        f"%mul.9.0 = f32[8]{{0}} multiply(%p, %broadcast.9.0), {product}",
        f"%t = (f32[8]{{0}}, f32[4]{{0}}) tuple(%mul.9.0, %{name})",
    ]
    assert maker("mul.9.0", *lines) == expected


@pytest.mark.parametrize(
    ("shape", "number", "expected"),
    [("[1]{0}", "{0.5}", Maker.SIMPLIFIER_AGAIN), ("[]", "0.5", Maker.SIMPLIFIER)],
)
def test_a_quotient_by_a_number_that_was_spread_to_one_element(
    shape: str, number: str, expected: Maker
) -> None:
    lines = [
        f"%constant.9 = f32{shape} constant({number})",
        f"%abs.1.0 = f32{shape} abs(%p), {op('abs')}",
        f"%multiply.1.0 = f32{shape} multiply(%abs.1.0, %constant.9), {op('div')}",
    ]
    assert maker("multiply.1.0", *lines) == expected
