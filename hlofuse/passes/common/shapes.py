"""Shapes to make new instructions of, and how the dimensions of a reshape correspond."""

import math
from collections.abc import Container, Iterable
from functools import lru_cache
from itertools import pairwise

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Dims, Instruction, Ints, Layout, Shape, replace
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, SliceRanges, Window


def array(element_type: str, dimensions: Iterable[int] = ()) -> Shape:
    """A row-major array (`ShapeUtil::MakeShape`)."""
    sizes = tuple(dimensions)
    return _laid_out(element_type, sizes, tuple(range(len(sizes) - 1, -1, -1)))


def with_layout(element_type: str, dimensions: Iterable[int], minor_to_major: Iterable[int]) -> Shape:
    """An array that lies like this (`ShapeUtil::MakeShapeWithDenseLayout`)."""
    return _laid_out(element_type, tuple(dimensions), tuple(minor_to_major))


@lru_cache(maxsize=4096)  # of equal shapes that are one object everything is worked out once
def _laid_out(element_type: str, dimensions: Dims, minor_to_major: Dims) -> Shape:
    return Shape(element_type, dimensions, Layout(minor_to_major))


def descending(shape: Shape) -> Shape:
    """The same array in row-major order (`MakeShapeWithDescendingLayout`)."""
    return array(shape.element_type, shape.dimensions)


def with_dimensions(shape: Shape, dimensions: Ints) -> Shape:
    """The same element type in other, row-major, dimensions."""
    return array(shape.element_type, dimensions)


def others(rank: int, dimensions: Container[int]) -> list[int]:
    """All dimensions but these, in order."""
    return [d for d in range(rank) if d not in dimensions]


def without(shape: Shape, dimensions: Ints) -> Shape:
    """`shape` without these dimensions, the others lying as they did (`ShapeUtil::DeleteDimensions`)."""
    remaining = others(shape.rank, dimensions)
    order = [remaining.index(d) for d in shape.minor_to_major if d in remaining]
    return with_layout(shape.element_type, [shape.dimensions[d] for d in remaining], order)


def inserted(shape: Shape, place: int, sizes: Ints) -> Shape:
    """Dimensions of these sizes ahead of `place`, in layout, too (`ShapeUtil::InsertDimensionsAtIndex`)."""
    dims, new = shape.dimensions, range(place + len(sizes) - 1, place - 1, -1)
    order = [] if place < shape.rank else list(new)
    for d in shape.minor_to_major:
        order.append(d if d < place else d + len(sizes))
        if d == place:
            order += new
    return with_layout(shape.element_type, (*dims[:place], *sizes, *dims[place:]), order)


def without_ones(shape: Shape) -> Shape:
    """`shape` with no dimension of size 1 (`ShapeUtil::DropDegenerateDimensions`)."""
    return without(shape, [d for d, size in enumerate(shape.dimensions) if size == 1])


def permuted(shape: Shape, permutation: Ints) -> Shape:
    """Dimension k is `permutation[k]`; both lie in memory alike (`ShapeUtil::PermuteDimensions`)."""
    order = permute(inverse(tuple(permutation)), shape.minor_to_major)
    return with_layout(shape.element_type, permute(shape.dimensions, permutation), order)


def permute(values: Ints, permutation: Ints) -> Dims:
    """`Permute`: the i-th result is the value at `permutation[i]`; composes permutations, too."""
    return tuple(values[p] for p in permutation)


def is_identity(permutation: Ints) -> bool:
    return list(permutation) == list(range(len(permutation)))


def is_sorted(numbers: Ints) -> bool:
    return all(a <= b for a, b in pairwise(numbers))


def common_factors(a: Ints, b: Ints) -> list[tuple[int, int]]:
    """The places to cut both lists of sizes so that the parts' products agree (`CommonFactors`,
    `xla/util.cc`). The first cut is (0, 0) and the last one (len(a), len(b))."""
    if list(a) == list(b):
        return [(k, k) for k in range(len(a) + 1)]
    bounds = []
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


@lru_cache(maxsize=4096)
def unmodified_dimensions(source: Shape, result: Shape) -> tuple[tuple[int, int], ...]:
    """Pairs of dimensions a reshape leaves as they are (`DimensionsUnmodifiedByReshape`)."""
    cuts = common_factors(source.dimensions, result.dimensions)
    return tuple(p for p, q in pairwise(cuts) if q[0] - p[0] == 1 == q[1] - p[1])


def unmodified_by_reshape(source: Shape, result: Shape, dimensions: Ints) -> list[int] | None:
    """The places of `dimensions` in `result`; None if changed (`ReshapeLeavesDimensionsUnmodified`)."""
    if not is_sorted(dimensions):
        return None
    place = dict(unmodified_dimensions(source, result))
    return [place[d] for d in dimensions] if all(d in place for d in dimensions) else None


@lru_cache(maxsize=4096)
def ones_moved(source: Shape, result: Shape) -> tuple[Dims, Dims] | None:
    """The ones that a reshape deletes and inserts; None for more (`InsertedOrDeleted1SizedDimensions`)."""
    deleted = list[int]()
    inserted = list[int]()
    before = (-1, -1)
    for pair in [*unmodified_dimensions(source, result), (source.rank, result.rank)]:
        old = range(before[0] + 1, pair[0])
        new = range(before[1] + 1, pair[1])
        if any(source.dimensions[d] > 1 for d in old) or any(result.dimensions[d] > 1 for d in new):
            return None
        deleted += old
        inserted += new
        before = pair
    return tuple(deleted), tuple(inserted)


def physical(shape: Shape) -> Shape:
    """Row-major, dimensions as in memory (`MakeShapeWithDescendingLayoutAndSamePhysicalLayout`)."""
    sizes = [shape.dimensions[d] for d in reversed(shape.minor_to_major)]
    return array(shape.element_type, sizes)


@lru_cache(maxsize=4096)
def relaid(shape: Shape, minor_to_major: Dims) -> Shape:
    """The shape with another order in memory."""
    return replace(shape, layout=Layout(minor_to_major))


def transpose_for_bitcast(source: Shape, result: Shape) -> Dims | None:
    """The transpose that a bitcast is, if it is one (`DeduceTransposeDimensionsForBitcast`)."""
    if source.rank != result.rank:
        return None
    permutation = permute(source.minor_to_major, inverse(result.minor_to_major))
    return permutation if permute(source.dimensions, permutation) == result.dimensions else None


@lru_cache(maxsize=4096)
def aligned(source: Shape, result: Shape) -> Shape | None:
    """`result` with the layout that makes a reshape of `source` a bitcast (`AlignLayouts`)."""
    if 1 in source.dimensions or 1 in result.dimensions:
        simple = aligned(without_ones(source), without_ones(result))
        if simple is None:
            return None
        remaining = [d for d in range(result.rank) if result.dimensions[d] != 1]
        ones = [d for d in range(result.rank - 1, -1, -1) if result.dimensions[d] == 1]
        return relaid(result, (*(remaining[d] for d in simple.minor_to_major), *ones))
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
    order = list[int]()
    minor = 0
    while len(order) < result.rank:
        k = factor_of[source.minor_to_major[minor]]
        (start_a, start_b), (end_a, end_b) = factors[k], factors[k + 1]
        order += range(end_b - 1, start_b - 1, -1)
        minor += end_a - start_a
    return relaid(result, tuple(order))


def numbers_of(x: Instruction, name: str) -> Dims:
    """A list of numbers; none where the attribute is not there."""
    return tuple(x.attributes.get(name, ()))


def slice_sizes_of(x: Instruction) -> Dims:
    """The size along each dimension of a slice that a gather reads, or a scatter writes."""
    if x.opcode == "gather":
        return numbers_of(x, "slice_sizes")
    sizes = x.operands[-1].sizes
    single = numbers_of(x, "inserted_window_dims") + numbers_of(x, "input_batching_dims")
    window = iter([sizes[d] for d in numbers_of(x, "update_window_dims")])
    return tuple(1 if d in single else next(window, 1) for d in range(x.operand.rank))


def window_of(convolution: Instruction) -> Window:
    """The window of a convolution, or of a call that computes one; without dimensions where none is given."""
    found = convolution.attributes.get("window")
    return found if isinstance(found, Window) else Window()


def labels_of(convolution: Instruction) -> ConvolutionDimensionNumbers:
    found = convolution.attributes["dim_labels"]
    assert isinstance(found, ConvolutionDimensionNumbers)
    return found


def ranges_of(slice_: Instruction) -> SliceRanges:
    """Start, limit and stride of each dimension."""
    ranges: SliceRanges = slice_.attributes["slice"]
    return ranges
