"""Who made an instruction last: one case each, as the ids in XLA's dumps around that pass tell."""

from __future__ import annotations

import pytest

from hlofuse.pipelines.likely_ids.maker import Maker

from .made import MUL, SLICE, maker, op


def test_what_bears_the_programs_name_is_the_programs() -> None:
    assert maker("mul.5.0", MUL) == Maker.FRONT_END


def test_another_operation_in_the_place_of_the_programs() -> None:
    """x / 8 became x * 0.125."""
    assert (
        maker("multiply.1.0", f"%multiply.1.0 = f32[8]{{0}} multiply(%p, %p), {op('div')}")
        == Maker.SIMPLIFIER
    )


def test_a_slice_beside_what_simplification_made_is_the_programs() -> None:
    made = "%negate.1 = f32[4]{0} negate(%slice.5.0)"
    assert maker("slice.5.0", MUL, SLICE, made) == Maker.FRONT_END


def test_places_of_an_argmax_came_with_a_function_whose_name_does_not_tell() -> None:
    iota = f"%iota.1.0 = s32[8]{{0}} iota(), iota_dimension=0, {op('iota')}"
    reduced = (
        "%reduce.1.0 = (f32[], s32[]) reduce(%p, %iota.1.0, %zero, %none), dimensions={0}, to_apply=%region"
    )
    assert maker("iota.1.0", MUL, "%none = s32[] constant(0)", iota, reduced) == Maker.INLINER
    compared = "%eq.1.0 = pred[8]{0} compare(%iota.1.0, %iota.1.0), direction=EQ"
    assert maker("iota.1.0", MUL, iota, compared) == Maker.FRONT_END


def test_the_negated_sum_of_a_derivative_of_a_division_was_moved() -> None:
    """The front end has it between two reshapes, and so what is spread of it became one broadcast."""
    total = (
        f"%reduce_sum.5.0 = f32[8]{{0}} reduce(%q, %zero), dimensions={{1}}, to_apply=%region, {op('sum')}"
    )
    neg = f"%neg.5.0 = f32[8]{{0}} negate(%reduce_sum.5.0), {op('neg')}"
    spread = f"f32[8,4]{{1,0}} broadcast(%neg.5.0), dimensions={{0}}, {op('broadcast_in_dim')}"
    lines = (total, neg, f"%broadcast_in_dim.9.0 = {spread}")
    assert maker("neg.5.0", *lines) == Maker.SIMPLIFIER_AGAIN
    assert maker("broadcast_in_dim.9.0", *lines) == Maker.SIMPLIFIER_AGAIN
    assert maker("neg.5.0", total, neg) == Maker.FRONT_END


def test_a_sum_in_two_steps_was_made_late() -> None:
    inner = "%reduce.1.0 = f32[8]{0} reduce(%q, %zero), dimensions={1}, to_apply=%region"
    outer = "%reduce_sum.3.0 = f32[] reduce(%reduce.1.0, %zero), dimensions={0}, to_apply=%region, "
    outer += op("reduce_sum")
    assert maker("reduce_sum.3.0", inner, outer) == Maker.REDUCTIONS
    assert maker("reduce.1.0", inner, outer) == Maker.REDUCTIONS


def test_a_negated_sum_had_been_the_sum_of_what_is_negated() -> None:
    total = "%reduce_sum.3.0 = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%region, " + op("reduce_sum")
    assert (
        maker("negate.1.0", total, f"%negate.1.0 = f32[] negate(%reduce_sum.3.0), {op('neg')}")
        == Maker.SIMPLIFIER
    )


def test_numbers_set_right_what_neighbours_tell() -> None:
    """multiply.3 looks as if it were older, but its number is higher than that of the others."""
    anew = [f"%multiply.{k}.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('mul')}" for k in (1, 2)]
    odd = f"%multiply.NUMBER.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('div')}"
    assert (
        maker("multiply.3.0", MUL, *anew, odd.replace("NUMBER", "3"), matrices=True)
        == Maker.LAYOUT_NORMALIZATION
    )
    assert maker("multiply.0.0", MUL, *anew, odd.replace("NUMBER", "0"), matrices=True) == Maker.SIMPLIFIER


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("exponential.3.0", Maker.LAYOUT_NORMALIZATION),
        ("exp.9.0", Maker.SIMPLIFIER_AGAIN),
    ],
)
def test_a_name_that_framework_and_compiler_share_is_told_by_what_is_around(name: str, made: Maker) -> None:
    """All of one layout was made anew, and elsewhere only ReshapeMover leaves such numbers."""
    assert (
        maker(
            "add.2.0",
            f"%add.10.0 = f32[8,4]{{1,0}} add(%q, %q), {op('add')}",
            f"%exp.10.0 = f32[8,4]{{1,0}} exponential(%add.10.0), {op('exp')}",
            f"%{name} = f32[8,4]{{1,0}} exponential(%exp.10.0), {op('exp')}",
            f"%add.2.0 = f32[8,4]{{1,0}} add(%{name}, %q), {op('add')}",
        )
        == made
    )


def test_what_takes_the_place_of_another_operation_keeps_its_age() -> None:
    """The sign of a divisor that is above zero is false, and what was unequal to that is itself."""
    lines = (
        f"%lt.5.0 = pred[8]{{0}} compare(%p, %p), direction=LT, {op('lt')}",
        f"%ne.0.0 = pred[8]{{0}} compare(%p, %p), direction=LT, {op('jit(remainder)/lt')}",
        "%t = (pred[8]{0}, pred[8]{0}) tuple(%lt.5.0, %ne.0.0)",
    )
    assert maker("ne.0.0", *lines) == Maker.INLINER


def test_the_front_end_makes_the_root_last_unless_it_was_made_anew() -> None:
    root = "%tuple{} = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.5.0, %mul.5.0)"
    assert maker("tuple.1.0", MUL, root.format(".1.0")) == Maker.FRONT_END
    assert maker("tuple.1", MUL, root.format(".1")) == Maker.SIMPLIFIER


def test_what_joins_reductions_outside_of_their_functions_was_taken_apart() -> None:
    line = f"%reduce_max.5.0 = f32[8]{{0}} maximum(%p, %mul.5.0), {op('reduce_max')}"
    assert maker("reduce_max.5.0", MUL, line) == Maker.SIMPLIFIER_AGAIN
    window = line.replace("reduce_max", "reduce_window_max")
    assert maker("reduce_window_max.5.0", MUL, window) == Maker.SIMPLIFIER
    plain = line.replace("reduce_max", "max")
    assert maker("max.5.0", MUL, plain) == Maker.FRONT_END


def test_gathers_are_made_simple_ahead_of_everything_else() -> None:
    """Of indices with batches an iota was made for each dimension of these before that."""
    lines = [
        "%i = s32[8]{0} parameter(2)",
        "%iota.1.0 = s32[8,1]{1,0} iota(), iota_dimension=0",
        "%bitcast.1 = s32[8,1]{1,0} bitcast(%i)",
        "%concatenate.1.0 = s32[8,2]{1,0} concatenate(%iota.1.0, %bitcast.1), dimensions={1}, "
        + op("gather"),
        "%gather.1.0 = f32[8,1,1]{2,1,0} gather(%q, %concatenate.1.0), offset_dims={1,2}, "
        "collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}, "
        + op("gather"),
    ]
    assert maker("gather.1.0", *lines) == Maker.GATHERS
    assert maker("iota.1.0", *lines) == maker("concatenate.1.0", *lines) == Maker.INDICES


@pytest.mark.parametrize(
    ("path", "expected"),
    [("mul", Maker.SIMPLIFIER), ("iota_2x32_shape", Maker.LAYOUT_NORMALIZATION)],
)
def test_counts_of_random_bits_are_shifted_by_the_program(path: str, expected: Maker) -> None:
    """Under the opcode it was made anew, and the iota that it reads: simplification shifts none."""
    lines = (
        MUL,
        "%bits = u64[] constant(32)",
        f"%iota.5 = u64[8,4]{{1,0}} iota(), iota_dimension=1, {op(path)}",
        f"%broadcast.5 = u64[8,4]{{1,0}} broadcast(%bits), dimensions={{}}, {op(path)}",
        f"%shift-right-logical.5 = u64[8,4]{{1,0}} shift-right-logical(%iota.5, %broadcast.5), {op(path)}",
    )
    assert maker("shift-right-logical.5", *lines) == expected
    assert maker("iota.5", *lines) == expected
