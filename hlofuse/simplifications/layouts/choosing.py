"""The layout one side of an operation asks of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Layout, Shape
from hlofuse.simplifications.shapes import common_factors, inverse, ones_moved, without_ones

Order = tuple[int, ...]
"""Dimension numbers from minor to major."""

# Operands and results of these lie alike (`InstructionCanChangeLayout` says no).
_ALIKE = frozenset(
    """
    abs acos acosh asin asinh add add-dependency and atan2 atanh bitcast-convert ceil clamp
    count-leading-zeros compare complex concatenate convert cosine cosh all-gather all-gather-start
    all-gather-done all-to-all collective-broadcast collective-permute divide dynamic-slice
    dynamic-update-slice erf exponential exponential-minus-one fft floor imag is-finite log log-plus-one
    logistic map maximum minimum multiply mulhi negate not opt-barrier or xor pad power real
    reduce-precision reduce-window remainder reverse round-nearest-afz round-nearest-even rsqrt scatter
    select select-and-scatter shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice
    sort topk sqrt cbrt subtract stochastic-convert tan tanh popcnt triangular-solve cholesky while
    set-dimension-size all-reduce reduce-scatter all-reduce-start all-reduce-done ragged-all-to-all scan
    """.split()
)


def can_change_layout(x: Instruction) -> bool:
    if x.opcode == "custom-call":
        return x.attributes.get("custom_call_target") != "LayoutConstraint"
    return x.opcode not in _ALIKE


def row_major(rank: int) -> Order:
    return tuple(range(rank - 1, -1, -1))


def laid_out(shape: Shape, order: Order) -> Shape:
    return replace(shape, layout=Layout(order))


def align(source: Shape, result: Shape) -> Order | None:
    """The layout of `result` that makes a bitcast of a reshape from `source` (`ShapeUtil::AlignLayouts`)."""
    if 1 in source.dimensions or 1 in result.dimensions:
        kept = [d for d, n in enumerate(source.dimensions) if n != 1]
        order = tuple(kept.index(d) for d in source.minor_to_major if d in kept)
        inner = align(laid_out(without_ones(source), order), without_ones(result))
        if inner is None:
            return None
        place = [d for d, n in enumerate(result.dimensions) if n != 1]
        ones = [d for d in range(result.rank - 1, -1, -1) if result.dimensions[d] == 1]
        return (*(place[d] for d in inner), *ones)
    cuts = common_factors(source.dimensions, result.dimensions)
    piece: dict[int, int] = {}
    order = source.minor_to_major
    for k in range(len(cuts) - 1):
        start, end = cuts[k][0], cuts[k + 1][0]
        if start >= len(order):
            return None
        physical = order.index(start)
        piece[start] = k
        for d in range(start + 1, end):
            physical -= 1
            if physical < 0 or order[physical] != d:
                return None
            piece[d] = k
    out: list[int] = []
    minor = 0
    while len(out) < result.rank:
        k = piece[order[minor]]
        out += range(cuts[k + 1][1] - 1, cuts[k][1] - 1, -1)
        minor += cuts[k + 1][0] - cuts[k][0]
    return tuple(out)


def _through_reshape(source: Shape, order: Order, result: Shape) -> Order | None:
    if source.true_rank == 1 == result.true_rank:
        return None
    return align(laid_out(source, order), result)


def operand_layout(order: Order, x: Instruction, number: int) -> Order | None:
    """Of an operand, so that the result lies like this (`ChooseOperandLayoutFromOutputLayout`)."""
    operand = x.operands[number]
    if operand.shape.dimensions and operand.shape.rank == x.shape.rank and not can_change_layout(x):
        return order
    if x.opcode == "reshape":
        return _through_reshape(x.shape, order, operand.shape)
    if x.opcode == "transpose":
        return tuple(x.dimensions[d] for d in order)
    return None


def output_layout(order: Order, x: Instruction, number: int) -> Order | None:
    """Of the result, where an operand lies like this (`ChooseOutputLayoutFromOperandLayout`)."""
    operand = x.operands[number]
    if x.opcode == "reduce" and x.shape.is_tuple:
        kept = [d for d in range(operand.shape.rank) if d not in x.dimensions]
        return tuple(kept.index(d) for d in order if d in kept)
    if operand.shape.dimensions and operand.shape.rank == x.shape.rank and not can_change_layout(x):
        return order
    if x.opcode == "reshape":
        return _through_reshape(operand.shape, order, x.shape)
    if x.opcode == "transpose":
        place = inverse(x.dimensions)
        return tuple(place[d] for d in order)
    return None


def broadcast_operand_layout(order: Order, dimensions: Sequence[int]) -> Order:
    """`GetBroadcastLayoutFromOutput`: the broadcast's own dimensions in the result's order."""
    kept = sorted(dimensions)
    return tuple(kept.index(d) for d in order if d in kept)


def goes_forward(x: Instruction) -> bool:
    """`OperandLayoutAlwaysPropagateForward`."""
    return x.opcode in ("reduce", "transpose") or not can_change_layout(x)


def goes_to_operands(x: Instruction) -> bool:
    """`OutputLayoutAlwaysPropagateToOperands`."""
    return x.opcode != "reshape" and not can_change_layout(x)


def goes_to_siblings(x: Instruction) -> bool:
    """`OperandLayoutAlwaysPropagateToSiblings`."""
    return x.opcode == "reduce" or not can_change_layout(x)


def depth_first(x: Instruction) -> bool:
    """`InstructionShouldPropagateDepthFirst`."""
    if x.opcode == "reshape":
        source = x.operands[0].shape
        return source.rank == 1 or ones_moved(source, x.shape) is not None
    return x.opcode in ("gather", "scatter", "transpose") or x.fusion_kind == "kCustom"


def at_most_rank_1(shape: Shape) -> bool:
    if shape.is_tuple:
        return all(map(at_most_rank_1, shape.tuple_shapes))
    return shape.rank <= 1


def leaf_orders(shape: Shape) -> list[Order]:
    """The order of each array in it: two shapes with equal lists match but for tiles."""
    return [s.minor_to_major for _, s in shape.leaves() if s.is_array]


def subshape(shape: Shape, index: Sequence[int]) -> Shape:
    for k in index:
        shape = shape.tuple_shapes[k]
    return shape


def with_leaf(shape: Shape, index: Sequence[int], order: Order) -> Shape:
    """`shape` with another layout at one place."""
    if not index:
        return laid_out(shape, order)
    inner = list(shape.tuple_shapes)
    inner[index[0]] = with_leaf(inner[index[0]], index[1:], order)
    return replace(shape, tuple_shapes=tuple(inner))
