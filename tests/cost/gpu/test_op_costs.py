"""FLOP, bytes and reads of one operation each, and what is a bitcast of what, worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.op_costs import OpCost, op_cost, op_profile
from hlofuse.cost.gpu.shapes import (
    ShapeFacts,
    inverse,
    is_reshape_or_transpose_bitcast,
    normalized_transpose,
    reshape_is_bitcast,
)
from hlofuse.cost.gpu.ticks import TICKS_PER_SECOND, fp32, half_away, nanoseconds, scaled_sum, seconds, times
from hlofuse.ir import parse_module
from hlofuse.ir.shape import Layout, Shape
from hlofuse.releases import AROUND_FUSION as RELEASE

H100 = load_device("h100_sxm")
PROFILE = op_profile(H100, RELEASE)
PLUS = """HloModule m
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
more { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GT }
ENTRY e {
"""


def cost(lines: str) -> OpCost:
    """The cost of the root; a region costs 5 FLOP an evaluation."""
    root = parse_module(f"{PLUS}{lines}\n}}").entry.root
    operands = [ShapeFacts(o.shape, n) for n, o in enumerate(root.operands)]
    return op_cost(root, ShapeFacts(root.shape, -1), operands, PROFILE, lambda _: 5.0, H100, RELEASE)


X = "  x = f32[64,32] parameter(0)\n  zero = f32[] constant(0)\n"


@pytest.mark.parametrize(
    ("line", "written", "read", "reads", "flops"),
    [
        # XLA's figure for what its table does not have.
        ("a = f32[64,32] negate(x)", 8192, [8192], [1], 3 * 2048),
        ("a = f32[64,32] add(x, x)", 8192, [8192] * 2, [1, 1], PROFILE["add"]["f32"] * 2048),
        ("a = f32[64,32] copy(x)", 8192, [8192], [1], 0),
        ("a = f32[8,32] slice(x), slice={[0:8], [0:32]}", 1024, [1024], [1 / 8], 0),
        ("a = f32[64,32,4] broadcast(x), dimensions={0,1}", 32768, [32768], [4], 0),
        ("a = f32[2048] bitcast(x)", 0, [0], [1], 0),
        ("a = f32[32,64] transpose(x), dimensions={1,0}", 8192, [8192], [1], 0),
        ("a = f32[32,64]{0,1} transpose(x), dimensions={1,0}", 0, [0], [1], 0),
        ("a = (f32[64,32], f32[]) tuple(x, zero)", 16, [0, 0], [1, 1], 0),
        (
            "a = f32[64] reduce(x, zero), dimensions={1}, to_apply=plus",
            256,
            [8192, 256],
            [1, 64],
            5 * (2048 - 64),
        ),
        # Each window of four numbers is reduced by three additions.
        (
            "a = f32[64,8] reduce-window(x, zero), window={size=1x4 stride=1x4}, to_apply=plus",
            2048,
            [8192, 4],
            [1, 1],
            5 * 512 * 3,
        ),
        (
            "a = f32[64,29] reduce-window(x, zero), window={size=1x4}, to_apply=plus",
            7424,
            [64 * 29 * 4 * 4, 4],
            [29 * 4 / 32, 1],
            5 * 64 * 29 * 3,
        ),
        ("a = f32[64,32] map(x, x), to_apply=plus", 8192, [8192] * 2, [1, 1], 5 * 2048),
        ('a = f32[64,32] custom-call(x), custom_call_target="f"', -1, [-1], [1], -1),
        ('a = f32[64,32] custom-call(x), custom_call_target="xla.sdy.call_marker_after"', 0, [0], [1], 0),
    ],
)
def test_costs_by_opcode(
    line: str, written: float, read: list[float], reads: list[float], flops: float
) -> None:
    found = cost(f"{X}  ROOT {line}")
    assert (found.out_bytes, found.operand_bytes) == (written, read)
    assert found.utilization == pytest.approx(reads)
    assert found.flops == flops


def test_an_update_moves_the_update() -> None:
    found = cost(
        f"{X}  u = f32[8,32] parameter(1)\n  i = s32[] parameter(2)\n"
        "  ROOT a = f32[64,32] dynamic-update-slice(x, u, i, i)"
    )
    assert (found.out_bytes, found.operand_bytes[:2]) == (1024, [0, 1024])
    assert found.utilization[0] == pytest.approx((2048 - 256) / 2048)


def test_a_scatter_moves_its_updates_and_combines_each_element() -> None:
    found = cost(
        f"{X}  i = s32[8,1] parameter(1)\n  u = f32[8,32] parameter(2)\n"
        "  ROOT a = f32[64,32] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus"
    )
    assert (found.out_bytes, found.operand_bytes) == (1024, [1024, 32, 1024])
    assert found.flops == 5 * 256
    two = cost(
        f"{X}  y = f16[64,32] parameter(1)\n  i = s32[8,1] parameter(2)\n  u = f32[8,32] parameter(3)\n"
        "  v = f16[8,32] parameter(4)\n  ROOT a = (f32[64,32], f16[64,32]) scatter(x, y, i, u, v),"
        " update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
        " index_vector_dim=1, to_apply=plus"
    )
    assert (two.out_bytes, two.operand_bytes) == (1536, [1024, 512, 32, 1024, 512])


@pytest.mark.parametrize(("size", "dimension", "straddles"), [(32, 1, False), (33, 1, True), (33, 0, False)])
def test_a_concatenate_across_warps_computes_more(size: int, dimension: int, straddles: bool) -> None:
    rows, columns = (64, 2 * size) if dimension else (128, size)
    found = cost(
        f"  x = f32[64,{size}] parameter(0)\n"
        f"  ROOT a = f32[{rows},{columns}] concatenate(x, x), dimensions={{{dimension}}}"
    )
    each = H100.straddled_concatenate_flops if straddles else H100.concatenate_flops
    assert H100.straddled_concatenate_flops > H100.concatenate_flops
    assert found.flops == each * rows * columns


def test_windows_that_scatter_select_and_add() -> None:
    found = cost(
        "  x = f32[64] parameter(0)\n  s = f32[16] parameter(1)\n  zero = f32[] constant(0)\n"
        "  ROOT a = f32[64] select-and-scatter(x, s, zero), window={size=4 stride=4},"
        " select=more, scatter=plus"
    )
    assert found.flops == 5 * 16 * 3 + 5 * 16


def shape(*sizes: int, order: tuple[int, ...] | None = None, element_type: str = "f32") -> Shape:
    return Shape(element_type, sizes, Layout(order or tuple(reversed(range(len(sizes))))))


@pytest.mark.parametrize(
    ("source", "result", "same_place"),
    [
        (shape(8, 16), shape(128), True),
        (shape(8, 16), shape(4, 2, 16), True),
        (shape(8, 16), shape(16, 8), True),
        (shape(8, 16, order=(0, 1)), shape(128), False),
        (shape(8, 1, order=(0, 1)), shape(8), True),
        (shape(8, 16, order=(0, 1)), shape(8, 16), False),
        (shape(8, 16, order=(0, 1)), shape(8, 1, 16, order=(0, 1, 2)), True),
        (shape(8, 16), shape(8, 15), False),
        (shape(0, 16), shape(16, 0, order=(0, 1)), True),
        (shape(8, 16), shape(8, 16, element_type="s32"), False),
    ],
)
def test_a_reshape_that_moves_nothing(source: Shape, result: Shape, same_place: bool) -> None:
    assert reshape_is_bitcast(source, result) is same_place
    assert reshape_is_bitcast(result, source) is same_place
    ignoring = reshape_is_bitcast(source, result, True)
    assert ignoring is (same_place or source.element_type != result.element_type)


def test_a_transpose_that_moves_nothing_is_a_bitcast_too() -> None:
    whole = shape(8, 16)
    assert is_reshape_or_transpose_bitcast(whole, shape(16, 8, order=(0, 1)))
    assert is_reshape_or_transpose_bitcast(whole, shape(8, 16, element_type="bf16"))
    assert is_reshape_or_transpose_bitcast(whole, shape(128))
    assert not is_reshape_or_transpose_bitcast(whole, shape(8, 16, order=(0, 1)))
    assert not is_reshape_or_transpose_bitcast(whole, shape(8, 17))
    both, other = Shape.tuple_of([whole]), Shape.tuple_of([shape(8, 17)])
    assert is_reshape_or_transpose_bitcast(both, both)
    assert not is_reshape_or_transpose_bitcast(both, other)
    assert not is_reshape_or_transpose_bitcast(both, whole)
    assert not is_reshape_or_transpose_bitcast(whole, both)


@pytest.mark.parametrize(
    ("sizes", "permutation", "found"),
    [
        ((8, 16), (1, 0), ((16, 8), (1, 0))),
        ((8, 16), (0, 1), ((128,), (0,))),
        ((8, 1, 16), (2, 1, 0), ((16, 8), (1, 0))),
        ((2, 4, 16), (2, 0, 1), ((16, 8), (1, 0))),
        ((2, 4, 16), (1, 0, 2), ((4, 2, 16), (1, 0, 2))),
        ((2, 4, 16), (2, 1, 0), ((16, 4, 2), (2, 1, 0))),
        ((1, 1), (1, 0), ((1,), (0,))),
    ],
)
def test_dimensions_that_move_together_are_one(
    sizes: tuple[int, ...], permutation: tuple[int, ...], found: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    moved = shape(*(sizes[p] for p in permutation))
    assert normalized_transpose(shape(*sizes), moved, permutation) == found
    assert normalized_transpose(
        shape(*sizes, order=tuple(range(len(sizes)))), moved, permutation
    ) is None or (shape(*sizes, order=tuple(range(len(sizes)))).is_row_major)


@given(st.permutations(range(5)))
def test_the_inverse_of_a_permutation_undoes_it(order: list[int]) -> None:
    back = inverse(tuple(order))
    assert [order[k] for k in back] == list(range(5))


@given(st.floats(0, 1e9), st.floats(0, 1))
def test_durations_of_less_than_a_second_and_of_more_follow_one_rule(value: float, factor: float) -> None:
    """The short ways for short times give what the general way gives."""
    ticks = seconds(value * 1e-9)
    low_rest, low = math.modf(ticks * factor / TICKS_PER_SECOND)
    assert times(ticks, factor) == int(low) * TICKS_PER_SECOND + half_away(low_rest * TICKS_PER_SECOND)
    rest, whole = math.modf(4.0 * value / TICKS_PER_SECOND)
    assert nanoseconds(value) == int(whole) * TICKS_PER_SECOND + half_away(rest * TICKS_PER_SECOND)


def test_durations_of_seconds() -> None:
    assert nanoseconds(2.5e9) == 10_000_000_000
    assert nanoseconds(0.25e9) == 1_000_000_000
    assert times(10_000_000_000, 0.25) == 2_500_000_000
    assert times(6_000_000_000, 1.5) == 9_000_000_000
    assert times(1_000, 3.0) == 3_000
    assert scaled_sum(2.0**24 + 2, 1.0, 1.0) == fp32(2.0**24 + 3)
    assert scaled_sum(3.0, 0.5, 2.0) == 3.5
