"""Shapes to make new instructions of, and how the dimensions of a reshape correspond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hlofuse.ir.shape import Layout, Shape


def array(element_type: str, dimensions: Sequence[int] = ()) -> Shape:
    """A row-major array (`ShapeUtil::MakeShape`)."""
    layout = Layout(tuple(range(len(dimensions) - 1, -1, -1)))
    return Shape(element_type, tuple(dimensions), layout)


def with_dimensions(shape: Shape, dimensions: Sequence[int]) -> Shape:
    """The same element type in other, row-major, dimensions."""
    return array(shape.element_type, dimensions)


def without(shape: Shape, dimensions: Sequence[int]) -> Shape:
    """`shape` without these dimensions, the others lying as they did (`ShapeUtil::DeleteDimensions`)."""
    kept = [d for d in range(shape.rank) if d not in dimensions]
    order = tuple(kept.index(d) for d in shape.minor_to_major if d in kept)
    return Shape(shape.element_type, tuple(shape.dimensions[d] for d in kept), Layout(order))


def without_ones(shape: Shape) -> Shape:
    """`shape` with no dimension of size 1 (`ShapeUtil::DropDegenerateDimensions`)."""
    return array(shape.element_type, [d for d in shape.dimensions if d != 1])


def with_type(shape: Shape, element_type: str) -> Shape:
    """The same array of another element type (`ShapeUtil::ChangeElementType`)."""
    return replace(shape, element_type=element_type)


def permuted(shape: Shape, permutation: Sequence[int]) -> Shape:
    """Dimension k of the result is dimension `permutation[k]`, and both lie in memory alike
    (`ShapeUtil::PermuteDimensions`)."""
    place = inverse(permutation)
    order = tuple(place[d] for d in shape.minor_to_major)
    return Shape(shape.element_type, tuple(shape.dimensions[k] for k in permutation), Layout(order))


def reshape_is_bitcast(source: Shape, result: Shape) -> bool:
    """Does a reshape leave every element where it is in memory? (`ShapeUtil::ReshapeIsBitcast`)

    It is enough to look at the elements next to the first one in each dimension.
    """
    if source.element_type != result.element_type or source.element_count != result.element_count:
        return False
    if source.element_count == 0:
        return True
    return _steps_agree(source, result) and _steps_agree(result, source)


def _strides(sizes: Sequence[int], minor_to_major: Sequence[int]) -> list[int]:
    out = [0] * len(sizes)
    step = 1
    for d in minor_to_major:
        out[d] = step
        step *= sizes[d]
    return out


def _steps_agree(a: Shape, b: Shape) -> bool:
    logical_a = _strides(a.dimensions, range(a.rank - 1, -1, -1))
    logical_b = _strides(b.dimensions, range(b.rank - 1, -1, -1))
    physical_a = _strides(a.dimensions, a.minor_to_major)
    physical_b = _strides(b.dimensions, b.minor_to_major)
    for d, size in enumerate(a.dimensions):
        if size <= 1:
            continue
        index = [logical_a[d] // step % n for step, n in zip(logical_b, b.dimensions, strict=True)]
        if physical_a[d] != sum(k * step for k, step in zip(index, physical_b, strict=True)):
            return False
    return True


def inverse(permutation: Sequence[int]) -> list[int]:
    """`InversePermutation`."""
    out = [0] * len(permutation)
    for k, p in enumerate(permutation):
        out[p] = k
    return out


def composed(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The permutation that does `first` and then `second` (`ComposePermutations`)."""
    return [first[k] for k in second]


def is_identity(permutation: Sequence[int]) -> bool:
    return list(permutation) == list(range(len(permutation)))


def is_sorted(numbers: Sequence[int]) -> bool:
    return all(a <= b for a, b in pairwise(numbers))


def common_factors(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """Where to cut both lists of sizes so that the pieces' products agree (`CommonFactors`, `xla/util.cc`).

    The first cut is (0, 0) and the last one (len(a), len(b)).
    """
    if list(a) == list(b):
        return [(k, k) for k in range(len(a) + 1)]
    bounds: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b) and a[i] == b[j]:
        bounds.append((i, j))
        i, j = i + 1, j + 1
    whole = (len(a), len(b))
    if math.prod(a[i:]) != math.prod(b[j:]):
        return [(0, 0), whole]
    if math.prod(a[i:]) == 0:
        return [*bounds, (i, j), whole]
    of_a = of_b = 1
    while True:
        if of_a == of_b and (not bounds or (i, j) != bounds[-1]):
            bounds.append((i, j))
        left_a, left_b = i < len(a), j < len(b)
        if not left_a and not left_b:
            return bounds
        equal = of_a == of_b
        take_a = of_a < of_b or (left_a and (not left_b or (equal and a[i] <= b[j])))
        take_b = of_b < of_a or (left_b and (not left_a or (equal and b[j] <= a[i])))
        if take_a:
            of_a, i = of_a * a[i], i + 1
        if take_b:
            of_b, j = of_b * b[j], j + 1


def unmodified_dimensions(source: Shape, result: Shape) -> list[tuple[int, int]]:
    """Pairs of dimensions a reshape leaves as they are (`DimensionsUnmodifiedByReshape`)."""
    cuts = common_factors(source.dimensions, result.dimensions)
    return [p for p, q in pairwise(cuts) if q[0] - p[0] == 1 == q[1] - p[1]]


def kept_by_reshape(source: Shape, result: Shape, dimensions: Sequence[int]) -> list[int] | None:
    """Where `dimensions` of `source` are in `result`, if the reshape leaves all of them as they are
    (`ReshapeLeavesDimensionsUnmodified`)."""
    if not is_sorted(dimensions):
        return None
    place = dict(unmodified_dimensions(source, result))
    return [place[d] for d in dimensions] if all(d in place for d in dimensions) else None


def ones_moved(source: Shape, result: Shape) -> tuple[list[int], list[int]] | None:
    """The dimensions of size 1 that a reshape deletes and inserts; None if it does more than that
    (`InsertedOrDeleted1SizedDimensions`)."""
    deleted: list[int] = []
    inserted: list[int] = []
    before = (-1, -1)
    for pair in [*unmodified_dimensions(source, result), (source.rank, result.rank)]:
        gone, new = range(before[0] + 1, pair[0]), range(before[1] + 1, pair[1])
        if any(source.dimensions[d] > 1 for d in gone) or any(result.dimensions[d] > 1 for d in new):
            return None
        deleted += gone
        inserted += new
        before = pair
    return deleted, inserted
