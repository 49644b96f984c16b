"""Which shapes are views of the same bytes, and what layout makes them so (`xla/shape_util.cc`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from hlofuse.ir.shape import Layout, Shape
from hlofuse.simplifications.rewrites import row_major, with_layout
from hlofuse.simplifications.shapes import common_factors
from hlofuse.simplifications.shapes import inverse as inverse_list


def permute(values: Sequence[int], permutation: Sequence[int]) -> tuple[int, ...]:
    """`Permute`: the i-th result is the value at `permutation[i]`; composes permutations, too."""
    return tuple(values[p] for p in permutation)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """`InversePermutation`."""
    return tuple(inverse_list(permutation))


def descending(shape: Shape) -> Shape:
    """The same array in row-major order (`MakeShapeWithDescendingLayout`)."""
    return row_major(shape.element_type, shape.dimensions)


def physical(shape: Shape) -> Shape:
    """Row-major, dimensions as in memory (`MakeShapeWithDescendingLayoutAndSamePhysicalLayout`)."""
    sizes = [shape.dimensions[d] for d in reversed(shape.minor_to_major)]
    return row_major(shape.element_type, sizes)


def relaid(shape: Shape, minor_to_major: Iterable[int]) -> Shape:
    """The shape with another order in memory."""
    return replace(shape, layout=Layout(tuple(minor_to_major)))


def reshape_is_bitcast(source: Shape, result: Shape, *, any_type: bool = False) -> bool:
    """Does a reshape between the two leave every element where it is? (`ReshapeIsBitcast`)."""
    if not any_type and source.element_type != result.element_type:
        return False
    if source.element_count != result.element_count:
        return False
    if source.element_count == 0:
        return True
    return _unit_steps_stay(source, result) and _unit_steps_stay(result, source)


def _unit_steps_stay(source: Shape, result: Shape) -> bool:
    strides = _strides(source.dimensions, source.minor_to_major)
    other = _strides(result.dimensions, result.minor_to_major)
    logical = _strides(source.dimensions, range(source.rank - 1, -1, -1))
    for d, size in enumerate(source.dimensions):
        if size <= 1:
            continue
        linear, place = logical[d], 0
        for k in range(result.rank - 1, -1, -1):
            linear, index = divmod(linear, result.dimensions[k])
            place += index * other[k]
        if strides[d] != place:
            return False
    return True


def _strides(dimensions: Sequence[int], minor_to_major: Iterable[int]) -> list[int]:
    strides, step = [0] * len(dimensions), 1
    for d in minor_to_major:
        strides[d] = step
        step *= dimensions[d]
    return strides


def transpose_for_bitcast(source: Shape, result: Shape) -> tuple[int, ...] | None:
    """The transpose that a bitcast is, if it is one (`DeduceTransposeDimensionsForBitcast`)."""
    if source.rank != result.rank:
        return None
    permutation = permute(source.minor_to_major, inverse(result.minor_to_major))
    return permutation if permute(source.dimensions, permutation) == result.dimensions else None


def is_transpose_bitcast(source: Shape, result: Shape, permutation: Sequence[int]) -> bool:
    """`TransposeIsBitcast`, element types aside."""
    return permute(permutation, result.minor_to_major) == source.minor_to_major


def is_reshape_or_transpose_bitcast(a: Shape, b: Shape, *, any_type: bool = False) -> bool:
    """`IsReshapeOrTransposeBitcast`."""
    if not any_type and a.element_type != b.element_type:
        return False
    if a.key_ignoring_element_type == b.key_ignoring_element_type:
        return True
    if reshape_is_bitcast(a, b, any_type=True):
        return True
    permutation = transpose_for_bitcast(a, b)
    return permutation is not None and is_transpose_bitcast(b, a, permutation)


def permuted(shape: Shape, permutation: Sequence[int]) -> Shape:
    """The dimensions reordered, laid out so that the transpose moves nothing (`PermuteDimensions`)."""
    back = inverse(permutation)
    return replace(
        shape,
        dimensions=permute(shape.dimensions, permutation),
        layout=Layout(permute(back, shape.minor_to_major)),
    )


def without_dimensions(shape: Shape, gone: Iterable[int]) -> Shape:
    """`DeleteDimensions`: the others keep their order in memory."""
    left = [d for d in range(shape.rank) if d not in frozenset(gone)]
    number = {d: k for k, d in enumerate(left)}
    order = [number[d] for d in shape.minor_to_major if d in number]
    return with_layout(shape.element_type, [shape.dimensions[d] for d in left], order)


def without_ones(shape: Shape) -> Shape:
    """`DropDegenerateDimensions`."""
    return without_dimensions(shape, [d for d, size in enumerate(shape.dimensions) if size == 1])


def aligned(source: Shape, result: Shape) -> Shape | None:
    """`result` with the layout that makes a reshape of `source` a bitcast (`AlignLayouts`)."""
    if 1 in source.dimensions or 1 in result.dimensions:
        simple = aligned(without_ones(source), without_ones(result))
        if simple is None:
            return None
        kept = [d for d in range(result.rank) if result.dimensions[d] != 1]
        ones = [d for d in range(result.rank - 1, -1, -1) if result.dimensions[d] == 1]
        return relaid(result, [*(kept[d] for d in simple.minor_to_major), *ones])
    factors = common_factors(source.dimensions, result.dimensions)
    place = inverse(source.minor_to_major)
    factor_of = [0] * source.rank
    for k, ((start, _), (end, _)) in enumerate(pairwise(factors)):
        if start == end:
            continue
        at = place[start]
        for d in range(start, end):
            if d > start:
                at -= 1
                if at < 0 or source.minor_to_major[at] != d:
                    return None
            factor_of[d] = k
    order: list[int] = []
    minor = 0
    while len(order) < result.rank:
        k = factor_of[source.minor_to_major[minor]]
        (start_a, start_b), (end_a, end_b) = factors[k], factors[k + 1]
        order += range(end_b - 1, start_b - 1, -1)
        minor += end_a - start_a
    return relaid(result, order)
