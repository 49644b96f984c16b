"""Numbers of a shape that the models use often, computed once for each shape."""

import math
from functools import lru_cache

from hlofuse.ir.shape import COMPLEX_TYPES, Dims, Shape
from .ticks import fp32

NO_BITS = 2**31 - 1  # Bits of a shape that is not an array, where the minimum is taken


class ShapeFacts:
    """Sizes of one shape. Equal shapes share one object, so that `is` compares."""

    def __init__(self, shape: Shape, number: int) -> None:
        self.shape = shape
        self.number = number  # A unique number, for keys
        self.size = shape.buffer_size  # Bytes of the buffer (`GetShapeSize`)
        self.size_fp32 = fp32(self.size)
        self.elements = shape.element_count  # Elements, of all leaves of a tuple (`ElementsInRecursive`)
        self.elements_fp32 = fp32(self.elements)
        array = shape.is_array
        self.is_tuple = shape.is_tuple
        self.bits = shape.bit_width if array else NO_BITS
        """Bits of one element, pred counting 8 (`GetBitwidth`)."""
        self.element_bytes = (shape.bit_width + 7) // 8 if array else 4
        """Bytes of one element; 4 for a tuple or token, as in XLA's model."""
        self.storage_bits = self.element_bytes * 8 if array else 8
        self.is_complex = shape.element_type in COMPLEX_TYPES
        self.dimensions = shape.dimensions
        self.minor_to_major = shape.minor_to_major


class _Facts(dict[Shape, ShapeFacts]):
    def __missing__(self, shape: Shape) -> ShapeFacts:
        facts = self[shape] = ShapeFacts(shape, len(self))
        return facts


class ShapeTable:
    def __init__(self) -> None:
        self.facts = _Facts().__getitem__


def bytes_of_leaves(shape: Shape) -> float:
    """Bytes of the arrays of a tuple, summed in single precision."""
    size = 0.0
    for leaf in shape.leaf_shapes:
        size = fp32(size + ShapeFacts(leaf, -1).size)
    return size


def inverse(permutation: Dims) -> Dims:
    """`InversePermutation`."""
    result = [0] * len(permutation)
    for i, p in enumerate(permutation):
        result[p] = i
    return tuple(result)


@lru_cache(maxsize=4096)
def reshape_is_bitcast(source: Shape, result: Shape, ignore_element_type: bool = False) -> bool:
    """True if every element stays at its place in memory (`ShapeUtil::ReshapeIsBitcast`)."""
    if not ignore_element_type and source.element_type != result.element_type:
        return False
    if source.element_count != result.element_count:
        return False
    if source.element_count == 0:
        return True
    return _follows(source, result) and _follows(result, source)


def _follows(source: Shape, result: Shape) -> bool:
    """True if a step along each dimension of `source` is the same distance in memory in `result`."""
    source_strides, result_strides = strides_of(source), strides_of(result)
    logical = 1
    steps = [0] * source.rank
    for d in range(source.rank - 1, -1, -1):
        steps[d] = logical
        logical *= source.dimensions[d]
    for d in range(source.rank):
        if source.dimensions[d] <= 1:
            continue
        index, physical = steps[d], 0
        for e in range(result.rank - 1, -1, -1):
            index, digit = divmod(index, result.dimensions[e])
            physical += digit * result_strides[e]
        if physical != source_strides[d]:
            return False
    return True


def strides_of(shape: Shape, step: int = 1) -> list[int]:
    """The distance in memory of neighbours along each dimension, `step` being that of the most minor one."""
    strides = [0] * shape.rank
    for d in shape.minor_to_major:
        strides[d] = step
        step *= shape.dimensions[d]
    return strides


@lru_cache(maxsize=4096)
def is_reshape_or_transpose_bitcast(a: Shape, b: Shape) -> bool:
    """`ShapeUtil::IsReshapeOrTransposeBitcast`, element types ignored."""
    if a.is_tuple or b.is_tuple:
        return a.is_tuple and b.is_tuple and a.key_ignoring_element_type == b.key_ignoring_element_type
    if a.key_ignoring_element_type == b.key_ignoring_element_type or reshape_is_bitcast(a, b, True):
        return True
    return a.rank == b.rank and _physical(a) == _physical(b)


def _physical(shape: Shape) -> Dims:
    return tuple(shape.dimensions[d] for d in reversed(shape.minor_to_major))


@lru_cache(maxsize=4096)
def normalized_transpose(source: Shape, result: Shape, permutation: Dims) -> tuple[Dims, Dims] | None:
    """Result dimensions and permutation without size-1 dimensions, contiguous neighbours merged. None for
    layouts other than the default. Mirrors `ShapeUtil::GetNormalizedLogicalTransposeShape`."""
    if not source.is_row_major or not result.is_row_major:
        return None
    dropped, count = [], 0
    for size in source.dimensions:
        dropped.append(count)
        count += size == 1
    remaining = [k for k, size in enumerate(result.dimensions) if size != 1]
    moved = [permutation[k] - dropped[permutation[k]] for k in remaining]
    sizes = [result.dimensions[k] for k in remaining]
    if not moved:
        return (1,), (0,)
    starts = [k for k in range(len(moved)) if k == 0 or moved[k] != moved[k - 1] + 1]
    ends = [*starts[1:], len(moved)]
    dimensions = tuple(math.prod(sizes[s:e]) for s, e in zip(starts, ends, strict=True))
    order = sorted(moved[s] for s in starts)
    return dimensions, tuple(order.index(moved[s]) for s in starts)
