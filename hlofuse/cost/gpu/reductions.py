"""Reductions that have an emitter of their own, and their launches. Mirrors
`xla/service/gpu/reduction_utils.cc` and `xla/backends/gpu/codegen/emitters/reduction.cc`."""

from functools import lru_cache
from typing import NamedTuple

from hlofuse.ir.shape import Dims, Ints, Shape
from .device import DeviceDescription
from .shapes import NO_BITS, inverse
from .ticks import ceil_of_ratio

_MAX_THREADS_OF_ROW = 1024
_ELEMENTS_OF_THREAD = 16
_THREADS_TARGET = 256
_TILE = 32
RACE_FREE_ROWS = 8  # The limit of most major reduced rows for one block (`BatchedReductionRaceFreeBound`)


class Reduction(NamedTuple):
    """Kind and sizes of a reduction (`ReductionDimensions`), major to minor. A row reduction reduces the
    first and the last of its sizes, a column reduction the middle one."""

    is_row: bool
    sizes: tuple[int, int, int]


@lru_cache(maxsize=4096)
def reduction_of(operand: Shape, reduced: Dims) -> tuple[Reduction, bool]:
    """The kind, and True if kept or reduced dimensions are contiguous in memory."""
    remaining = tuple(d for d in range(operand.rank) if d not in reduced)
    together = neighbours(operand, remaining) or neighbours(operand, reduced)
    if not remaining:
        return Reduction(True, (1, 1, operand.element_count)), together
    if neighbours(operand, remaining):
        major, middle, minor = _partition(operand, remaining)
        if middle == 1:
            return Reduction(True, (1, 1, major * minor)), together
        if minor == 1:
            return Reduction(False, (1, major, middle)), together
        return Reduction(True, (major, middle, minor)), together
    major, middle, minor = _partition(operand, reduced)
    if minor == 1:
        return Reduction(True, (1, major, middle)), together
    return Reduction(False, (major, middle, minor)), together


def neighbours(shape: Shape, dimensions: Ints) -> bool:
    """True if nothing lies between these dimensions in memory."""
    if len(dimensions) <= 1:
        return True
    position = inverse(shape.minor_to_major)
    places = [position[d] for d in dimensions]
    return max(places) - min(places) == len(dimensions) - 1


def _partition(shape: Shape, middle: Dims) -> tuple[int, int, int]:
    sizes = [1, 1, 1]
    segment = 2
    for d in shape.minor_to_major:
        if segment == 2 and d in middle:
            segment = 1
        elif segment == 1 and d not in middle:
            segment = 0
        sizes[segment] *= shape.dimensions[d]
    return sizes[0], sizes[1], sizes[2]


def faster_than_elemental(device: DeviceDescription, reduction: Reduction) -> bool:
    """True if the reduction emitter is faster (`IsUnnestedReductionFasterThanElemental`)."""
    warp = device.threads_per_warp
    _, major, minor = reduction.sizes
    if reduction.is_row:
        return minor >= warp or (minor > 0 and warp % minor == 0)
    return not (
        major < warp
        or (major < 2 * warp and minor < warp)
        or (major < 4 * warp and minor < 8)
        or (major < 8 * warp and minor < 3)
    )


def race_free_bound(device: DeviceDescription, reduction: Reduction) -> int:
    """The limit of a reduced dimension for one block (`ReductionDimensionRaceFreeBound`)."""
    return _MAX_THREADS_OF_ROW * 16 if reduction.is_row else device.threads_per_warp * 128


def is_race_free(device: DeviceDescription, reduction: Reduction) -> bool:
    """True if one block computes the whole of each output element (`ReductionIsRaceFree`)."""
    if reduction.is_row:
        fits = reduction.sizes[2] <= race_free_bound(device, reduction)
        return fits and reduction.sizes[0] <= RACE_FREE_ROWS
    return reduction.sizes[1] <= race_free_bound(device, reduction)


def shared_memory_of_reduction(reduction: Reduction, element_bytes: int, vectors: bool) -> int:
    """Bytes (`SharedMemoryUsageNoCache`); `element_bytes` sums over the reduce's inputs. A column reduction
    exchanges rows of `vectors`, or single elements in four tiles."""
    column = 32 * (4 * 32 + 1) if vectors else 4 * 32 * 33
    return (32 if reduction.is_row else column) * element_bytes


def reduction_launch(
    device: DeviceDescription, reduction: Reduction, input_bits: int, output_bits: int, has_complex: bool
) -> tuple[int, int]:
    """Blocks (for one group of roots) and threads of a block (`CreateReductionFusion`). `input_bits` and
    `output_bits` are the smallest widths among the kernel's parameters and roots."""
    outer, remaining, minor = reduction.sizes
    if reduction.is_row:
        if (multi_row := _multi_row_launch(device, reduction, input_bits, output_bits)) is not None:
            return multi_row
        warp = device.threads_per_warp
        in_row = min(_MAX_THREADS_OF_ROW, -(-ceil_of_ratio(minor, _ELEMENTS_OF_THREAD) // warp) * warp)
        rows = _rows_of_block(remaining, in_row) if in_row * 2 <= _THREADS_TARGET else 1
        vector = _vector_size(minor, in_row, input_bits, has_complex)
        vectors = minor // vector
        each = min(_ELEMENTS_OF_THREAD // vector, ceil_of_ratio(vectors, in_row))
        return ceil_of_ratio(remaining, rows) * ceil_of_ratio(vectors, each * in_row), rows * in_row
    if minor and device.threads_per_warp % minor == 0:
        return outer, min(128, _TILE * minor)  # of at most 32 rows
    vector = _vector_size(minor, _TILE, input_bits, has_complex)
    return outer * ceil_of_ratio(minor, _TILE * vector), _TILE * _TILE


def _rows_of_block(remaining: int, in_row: int) -> int:
    return remaining if remaining * in_row <= _THREADS_TARGET else _THREADS_TARGET // in_row


def _multi_row_launch(
    device: DeviceDescription, reduction: Reduction, input_bits: int, output_bits: int
) -> tuple[int, int] | None:
    _, remaining, minor = reduction.sizes
    if minor & (minor - 1):
        return None
    smallest, largest = min(input_bits, output_bits), max(input_bits, output_bits)
    if largest == NO_BITS:  # no inputs
        largest = output_bits
    vector = min(minor, 64 // smallest)
    if largest >= 32:
        vector = min(128 // largest, vector)
    warp = device.threads_per_warp
    if minor > warp * vector:
        return None
    while (
        vector > 1
        and ceil_of_ratio(remaining, _rows_of_block(remaining, minor // vector)) < device.core_count
    ):
        vector //= 2
    if vector < 1 or minor > warp * vector:
        return None
    rows = _rows_of_block(remaining, minor // vector)
    return ceil_of_ratio(remaining, rows), rows * (minor // vector)


def _vector_size(minor: int, threads: int, input_bits: int, has_complex: bool) -> int:
    """`GetVectorSizeForMlir`."""
    if minor % 2 or threads * 2 > minor or has_complex or input_bits >= 64:
        return 1
    if input_bits >= 32 or threads * 4 > minor:
        return 2
    return 4 if minor % 4 == 0 else 2
