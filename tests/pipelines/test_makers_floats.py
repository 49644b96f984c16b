"""Who made an instruction last: converts, and what was narrow or wide."""

from __future__ import annotations

import pytest

from hlofuse.pipelines.likely_ids.maker import Maker

from .made import MUL, maker, op


@pytest.mark.parametrize(
    ("kind", "expected"), [("bf16", Maker.SIMPLIFIER_AGAIN), ("f32", Maker.SIMPLIFIER_LAST)]
)
def test_what_was_spread_narrow_is_as_old_as_it_was(kind: str, expected: Maker) -> None:
    """Float normalization put converts around it; where it is wide a convert went in front of it."""
    given, read = ("f32", "f32") if kind == "bf16" else ("bf16", "bf16")
    lines = (
        f"%given = {given}[8]{{0}} convert(%p)" if given == "bf16" else "%given = f32[8]{0} add(%p, %p)",
        f"%convert.1 = {kind}[8]{{0}} convert(%given)",
        f"%broadcast.1 = {kind}[8,4]{{1,0}} broadcast(%convert.1), dimensions={{0}}, {op('div')}",
        f"%convert.2 = {read}[8,4]{{1,0}} convert(%broadcast.1)"
        if kind == "bf16"
        else "%abs.1.0 = f32[8,4]{1,0} abs(%broadcast.1)",
    )
    assert maker("broadcast.1", MUL, *lines) == expected


def test_a_convert_that_nobody_asked_for_is_float_normalizations() -> None:
    line = "%convert.1.0 = bf16[8]{0} convert(%mul.5.0), " + op("mul")
    assert maker("convert.1.0", MUL, line) == Maker.FLOAT_NORMALIZATION
    spread = "%broadcast.3.0 = bf16[8,4]{1,0} broadcast(%convert.1.0), dimensions={0}"
    assert maker("broadcast.3.0", MUL, line, spread) == Maker.SIMPLIFIER_LAST
    assert maker("convert.1.0", MUL, line, spread) == Maker.SIMPLIFIER_LAST
    negated = "%neg.1.0 = bf16[8]{0} negate(%convert.1.0)"
    assert maker("convert.1.0", MUL, line, spread, negated) == Maker.FLOAT_NORMALIZATION


@pytest.mark.parametrize(("number", "made"), [(3, Maker.SIMPLIFIER_LAST), (1, Maker.SIMPLIFIER_AGAIN)])
def test_what_is_numbered_behind_what_was_converted_is_no_older(number: int, made: Maker) -> None:
    lines = (
        MUL,
        f"%convert.1.0 = bf16[8]{{0}} convert(%mul.5.0), {op('mul')}",
        "%broadcast.2.0 = bf16[8,4]{1,0} broadcast(%convert.1.0), dimensions={0}",
        f"%broadcast.{number}.0 = f32[8,4]{{1,0}} broadcast(%mul.5.0), dimensions={{0}}, {op('add')}",
        f"%add.5.0 = f32[8,4]{{1,0}} add(%broadcast.{number}.0, %q), {op('add')}",
    )
    assert maker(f"broadcast.{number}.0", *lines) == made


def test_float_normalization_knows_no_integers() -> None:
    """A random number's bits, as RngBitGeneratorExpander takes them apart."""
    line = "%convert.1.0 = u32[8]{0} convert(%mul.5.0), " + op("rng_bit_generator")
    assert maker("convert.1.0", MUL, line) == Maker.SIMPLIFIER


def test_a_broadcast_for_what_had_been_narrow_was_made_behind_float_normalization() -> None:
    top = f"%top.1.0 = f32[] reduce(%mul.5.0, %zero), dimensions={{0}}, to_apply=%region, {op('top')}"
    spread = f"%broadcast.3.0 = f32[8]{{0}} broadcast(%top.1.0), dimensions={{}}, {op('sub')}"
    sub = f"%sub.1.0 = f32[8]{{0}} subtract(%p, %broadcast.3.0), {op('sub')}"
    narrow = "%convert.1.0 = bf16[8]{0} convert(%sub.1.0)"
    assert maker("broadcast.3.0", MUL, top, spread, sub, narrow) == Maker.SIMPLIFIER_LAST
    assert maker("broadcast.3.0", MUL, top, spread, sub) == Maker.SIMPLIFIER_AGAIN


def test_a_number_whose_readers_were_widened_is_the_program_s() -> None:
    half = "%constant.1.0 = bf16[] constant(0.5)"
    spread = "%broadcast.5.0 = bf16[8]{0} broadcast(%constant.1.0), dimensions={}"
    widened = "%convert.4.0 = f32[8]{0} convert(%broadcast.5.0)"
    assert maker("broadcast.5.0", MUL, half, spread, widened) == Maker.FRONT_END


@pytest.mark.parametrize(
    ("between", "made"), [("bitcast(%p)", Maker.REDUCTIONS), ("sine(%p)", Maker.FRONT_END)]
)
def test_what_is_reduced_may_be_widened_behind_what_groups_its_dimensions(between: str, made: Maker) -> None:
    lines = [
        f"%b = f32[8]{{0}} {between}",
        "%convert.1 = f32[8]{0} convert(%b)",
        "%reduce_sum.5.0 = f32[] reduce(%convert.1, %zero), dimensions={0}, to_apply=%region, "
        + op("reduce_sum"),
    ]
    assert maker("reduce_sum.5.0", *lines) == made


@pytest.mark.parametrize(
    ("kind", "expected"), [("s32", Maker.SIMPLIFIER_LAST), ("bf16", Maker.FLOAT_NORMALIZATION)]
)
def test_a_whole_number_that_had_been_narrow_was_converted_at_once_in_the_end(
    kind: str, expected: Maker
) -> None:
    lines = (
        f"%n.1.0 = {kind}[8]{{0}} parameter(2)",
        "%convert.1.0 = f32[8]{0} convert(%n.1.0)",
        f"%add.1.0 = f32[8]{{0}} add(%p, %convert.1.0), {op('add')}",
    )
    assert maker("convert.1.0", *lines) == expected


def test_a_whole_number_that_had_been_narrow_was_converted_behind_what_spreads_it() -> None:
    """What spreads it took the convert behind it in: the two converts became one when that was there."""
    lines = (
        "%n.1.0 = s32[] parameter(2)",
        "%convert.1.0 = f32[] convert(%n.1.0)",
        "%broadcast.1.0 = f32[8]{0} broadcast(%convert.1.0), dimensions={}",
        f"%add.1.0 = f32[8]{{0}} add(%p, %broadcast.1.0), {op('add')}",
    )
    assert maker("convert.1.0", *lines) == Maker.CONVERSIONS_LAST


@pytest.mark.parametrize(
    ("reshaped", "made"), [("square", Maker.MOVED_CONVERTS), ("", Maker.LAYOUT_NORMALIZATION)]
)
def test_what_is_widened_behind_the_reshape_of_another_operation_was_moved(
    reshaped: str, made: Maker
) -> None:
    """So ConvertMover does; in another layout the bitcast would be a pass's."""
    lines = [
        "%n = bf16[8,4]{1,0} parameter(2)",
        "%bitcast.1.0 = bf16[2,4,4]{2,1,0} bitcast(%n)" + (f", {op(reshaped)}" if reshaped else ""),
        f"%convert.3.0 = f32[2,4,4]{{2,1,0}} convert(%bitcast.1.0), {op('convert_element_type')}",
    ]
    assert maker("convert.3.0", *lines) == made
