"""Which shapes are views of the same bytes, and what layout makes them so (`xla/shape_util.cc`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.shape import Layout, Shape
from hlofuse.passes.common.shapes import array, common_factors, permute, without_ones


def physical(shape: Shape) -> Shape:
    """Row-major, dimensions as in memory (`MakeShapeWithDescendingLayoutAndSamePhysicalLayout`)."""
    sizes = [shape.dimensions[d] for d in reversed(shape.minor_to_major)]
    return array(shape.element_type, sizes)


def relaid(shape: Shape, minor_to_major: Iterable[int]) -> Shape:
    """The shape with another order in memory."""
    return replace(shape, layout=Layout(tuple(minor_to_major)))


def transpose_for_bitcast(source: Shape, result: Shape) -> tuple[int, ...] | None:
    """The transpose that a bitcast is, if it is one (`DeduceTransposeDimensionsForBitcast`)."""
    if source.rank != result.rank:
        return None
    permutation = permute(source.minor_to_major, inverse(result.minor_to_major))
    return permutation if permute(source.dimensions, permutation) == result.dimensions else None


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
