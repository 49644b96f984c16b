"""Transposes through shared memory. Mirrors `xla/…/ir_emission_utils.cc` and `xla/…/transpose.cc`."""

import math
from functools import lru_cache
from typing import NamedTuple

from hlofuse.ir.shape import Dims, Shape
from .device import DeviceDescription
from .shapes import NO_BITS, inverse, normalized_transpose

_BANKS = 32
_BANK_BITS = 32
_MIN_SIDE_ELEMENTS = 16
_MIN_SIDE_ELEMENTS_OF_LARGE = 8
_MIN_ELEMENTS_OF_LARGE = 64 * 128
_MAX_BITS_OF_MINOR = 64
TILE = 32  # Elements along each side of a tile, where an element is no narrower than a bank
_LLVM_PERMUTATIONS = ((1, 0), (0, 2, 1), (2, 1, 0))


class TiledTranspose(NamedTuple):
    """A transpose the transpose emitter takes (`TransposeDescription`)."""

    dimensions: Dims  # Normalised dimensions of the result
    permutation: Dims
    bits: int  # Bits of an element; 0 where different sizes may be combined
    shared_memory: int  # Bytes in a block before vectorising

    def is_equivalent(self, other: "TiledTranspose") -> bool:
        """True if one kernel can do both (`TransposeDescription::IsEquivalent`)."""
        return self[:3] == other[:3]


@lru_cache(maxsize=4096)
def tiled_transpose(source: Shape, result: Shape, permutation: Dims) -> TiledTranspose | None:
    """The description; None for another emitter (`GetDescriptionForTiledTransposeEmitter`)."""
    normalized = normalized_transpose(source, result, permutation)
    if normalized is None or len(normalized[1]) < 2:
        return None
    dimensions, order = normalized
    bits = result.bit_width or NO_BITS
    source_dimensions = tuple(dimensions[i] for i in inverse(order))
    if packed_tiles(dimensions, order, bits) is not None:
        return TiledTranspose(dimensions, order, bits, _BANKS * 4 * _BANKS * (_BANK_BITS // bits))
    last = dimensions[-1]
    if order[-1] == len(dimensions) - 1:
        swapped = min(source_dimensions[-2], dimensions[-2])
        if bits * last <= _MAX_BITS_OF_MINOR and bits * last * swapped >= 8 * _MIN_SIDE_ELEMENTS:
            return TiledTranspose(dimensions, order, bits, -(-_BANKS * (_BANKS + 1) * bits * last // 8))
        return None
    if bits != 4 and _is_large(source_dimensions[-1], last):
        return TiledTranspose(dimensions, order, bits, -(-_BANKS * (_BANKS + 1) * bits // 8))
    return None


def _is_large(one: int, other: int) -> bool:
    smaller = min(one, other)
    if smaller < _MIN_SIDE_ELEMENTS_OF_LARGE:
        return False
    return smaller >= _MIN_SIDE_ELEMENTS or one * other >= _MIN_ELEMENTS_OF_LARGE


@lru_cache(maxsize=4096)
def bytewise_transpose(source: Shape, result: Shape, permutation: Dims) -> TiledTranspose | None:
    """`tiled_transpose` before `packed_transposes`: raw dimensions, whole bytes, mixed element sizes."""
    dimensions, rank = result.dimensions, len(permutation)
    if rank < 2:
        return None
    last, width = dimensions[-1], -(-result.bit_width // 8)
    if permutation[-1] == rank - 1:
        width *= last
        fits = 8 * width <= _MAX_BITS_OF_MINOR
        if not fits or width * min(source.dimensions[-2], dimensions[-2]) < _MIN_SIDE_ELEMENTS:
            return None
    elif not _is_large(source.dimensions[-1], last):
        return None
    return TiledTranspose(dimensions, permutation, 0, _BANKS * (_BANKS + 1) * width)


@lru_cache(maxsize=4096)
def llvm_transpose(source: Shape, result: Shape, permutation: Dims) -> TiledTranspose | None:
    """`tiled_transpose` for the emitters of LLVM IR, which jaxlib 0.4.35 still uses."""
    if permutation not in _LLVM_PERMUTATIONS:
        return None
    dimensions, last = result.dimensions, result.dimensions[-1]
    if not _is_large(source.dimensions[-1], last):
        return None
    if len(dimensions) == 2:
        dimensions, permutation = (1, *dimensions), (0, 2, 1)
    return TiledTranspose(dimensions, permutation, 0, TILE * (TILE + 1) * -(-result.bit_width // 8))


@lru_cache(maxsize=4096)
def packed_tiles(dimensions: Dims, permutation: Dims, bits: int) -> tuple[Dims, Dims] | None:
    """Canonical result dimensions and tile sizes of packed elements (`GetPackedTransposeTileSizes`)."""
    if bits >= _BANK_BITS:
        return None
    sizes, order = list(dimensions), list(permutation)
    if order[-1] != len(sizes) - 1:
        order.append(len(sizes))
        sizes.append(1)
    rank = len(sizes)
    if rank < 3 or order[rank - 3] != rank - 3:
        sizes.insert(rank - 2, 1)
        order = [p + 1 if p > rank - 3 else p for p in order]
        order.insert(rank - 2, rank - 2)
        rank += 1
    back = inverse(tuple(order))
    source = [sizes[i] for i in back]
    vector = _BANK_BITS // bits
    side = _BANKS * vector
    tile_1 = min(source[rank - 2], side)
    tile_a = min(source[rank - 3], side // tile_1)
    size_2 = source[order[rank - 2]]
    tile_2 = min(size_2, side)
    columns = tile_a * tile_1
    if min(columns, tile_2) < 10 * vector:
        return None
    if source[-1] != 1 or tile_2 % vector or columns % vector or size_2 % tile_2 % vector:
        return None
    tiles = [1] * rank
    tiles[back[rank - 2]] = tile_1
    tiles[rank - 2] = tile_2
    tiles[rank - 3] = tile_a
    return tuple(sizes), tuple(tiles)


def transpose_launch(
    device: DeviceDescription, transpose: TiledTranspose, tiled_element_bytes: list[int]
) -> tuple[int, int]:
    """Blocks and threads of a block; `tiled_element_bytes` has an entry for each tiled root."""
    threads = 256 if device.is_rocm else 128
    bits = transpose.bits
    packed = packed_tiles(transpose.dimensions, transpose.permutation, bits) if bits else None
    if packed is not None:
        return math.prod(-(-d // t) for d, t in zip(*packed, strict=True)), threads
    order = transpose.permutation
    source = [transpose.dimensions[i] for i in inverse(order)]
    keeps_minor = order[-1] == len(source) - 1
    if keeps_minor:
        return _blocks(source, order, source[-1], keeps_minor), threads
    blocks = _blocks(source, order, 1, keeps_minor)
    shared = sum(_BANKS * (_BANKS + 1) * size for size in tiled_element_bytes)
    vector = (16 if device.is_rocm else 4) // max(tiled_element_bytes)
    while vector > 1:
        each = vector * vector
        enough_work = blocks * threads >= each * device.core_count * device.threads_per_core_limit
        aligned = source[-1] % vector == 0 and source[order[-1]] % vector == 0
        if enough_work and aligned and shared * each <= device.shared_memory_per_block:
            return _blocks(source, order, vector, keeps_minor), threads
        vector //= 2
    return blocks, threads


def _blocks(source: list[int], order: Dims, vector: int, keeps_minor: bool) -> int:
    tiles = [1] * len(source)
    if keeps_minor:
        tiles[-1] = vector
        tiles[-2] = 32
        tiles[order[len(source) - 2]] = 32
    else:
        tiles[-1] = tiles[order[-1]] = 32 * vector
    return math.prod(-(-d // t) for d, t in zip(source, tiles, strict=True))
