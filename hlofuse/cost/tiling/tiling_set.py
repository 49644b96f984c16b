"""Tilings of one extent, and what has been worked out for them: the same for all fusions tiled so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tiling.analysis import Analysis, TiledNode
from hlofuse.cost.tiling.constraints import ALWAYS
from hlofuse.cost.tiling.op_kinds import OpKind
from hlofuse.cost.tiling.size_and_stride import SymbolicTile, symbolic_tile
from hlofuse.cost.tiling.tilings import (
    Column,
    Columns,
    Mask,
    Value,
    all_tilings,
    block_count,
    power_of_two_ceil,
)


class TilingSet:
    """A column for each tiling parameter. A fusion that grows asks about the same tiles again and again."""

    def __init__(
        self, extents: Sequence[int], columns: Sequence[Column], transaction: int, pads: bool = False
    ) -> None:
        """`transaction` is how many bytes memory gives at once; tiles that pad read up to a power of two."""
        self._extents = tuple(extents)
        self._transaction = transaction
        self.count = len(columns[0])
        self.sizes = Columns(columns)
        """Values of tile sizes."""
        self._pads = pads
        self._extent = self.sizes.padded if pads else self.sizes.value
        self._strides = {self._extents: self.sizes}
        self._accesses: dict[tuple[OpKind, SymbolicTile], tuple[Value, NDArray[np.float64]]] = {}
        self._blocks: dict[tuple[tuple[int, ...], int], Column] = {}
        self._parts: dict[bytes, TilingSet] = {}

    @property
    def columns(self) -> Sequence[Value]:
        return self.sizes.parameters

    def blocks(self, dims: tuple[int, ...], first: int = 0) -> Column:
        """Blocks in the grid of an output of which parameter `first` tiles the first dimension."""
        cached = self._blocks.get((dims, first))
        if cached is None:
            blocks = block_count(dims, self.columns[first:])
            cached = self._blocks[dims, first] = np.broadcast_to(np.asarray(blocks), (self.count,))
        return cached

    def where(self, mask: Mask | bool) -> TilingSet:
        """Those of them for which the mask holds."""
        if mask is True:
            return self
        mask = np.broadcast_to(np.asarray(mask), (self.count,))
        if mask.all():
            return self
        key = mask.tobytes()
        part = self._parts.get(key)
        if part is None:
            columns = [np.asarray(c)[mask] for c in self.columns]
            part = self._parts[key] = TilingSet(self._extents, columns, self._transaction, self._pads)
        return part

    def strides(self, tile: SymbolicTile) -> Columns:
        """Values for a tile's strides, which are exact only up to the tile's own extents."""
        limits = tile.limits
        found = self._strides.get(limits)
        if found is None:
            clamped = [np.minimum(c, n) for c, n in zip(self.columns, limits, strict=False)]
            found = self._strides[limits] = Columns(clamped)
        return found

    def access(self, kind: OpKind, tile: SymbolicTile) -> tuple[Value, NDArray[np.float64]]:
        """Bytes of one tile of an array, and the share of the bandwidth that accessing it attains."""
        cached = self._accesses.get((kind, tile))
        if cached is None:
            size: Value = kind.element_bytes
            for expr, most in zip(tile.sizes, kind.dims, strict=True):
                size = size * np.minimum(self._extent(expr), most)
            share = self._bandwidth_share(kind, tile)
            cached = self._accesses[kind, tile] = size, share
        return cached

    def _bandwidth_share(self, kind: OpKind, tile: SymbolicTile) -> NDArray[np.float64]:
        """`BandwidthUtilizationRateHeuristicForTiledMemoryAccess`."""
        strides = self.strides(tile)
        contiguous: Value = 1
        reached: Mask | bool = True
        for d in kind.minor_to_major:
            reached = reached & (strides.value(tile.strides[d]) == 1)
            if reached is False or reached is np.False_:
                break
            extent = self._extent(tile.sizes[d])
            contiguous = contiguous * np.where(reached, np.minimum(extent, kind.dims[d]), 1)
            reached = reached & (extent >= kind.dims[d])
        size = np.asarray(contiguous) * kind.element_bytes
        transaction = self._transaction
        rate: NDArray[np.float64] = size / (transaction * -(-size // transaction))
        return rate


def all_of(extents: Sequence[int], transaction: int, pads: bool = False) -> TilingSet:
    """All tilings XLA tries of these extents."""
    return TilingSet(extents, all_tilings(extents) or [np.ones(1, dtype=np.int64)], transaction, pads)


# Which tilings of a fusion Triton's emitter takes.
#
# Mirrors `triton_emitter_constraints.cc` and `xtile/codegen/tiled_emitter_constraints.cc`.


MAX_TENSOR_ELEMENTS = 1048576
"""Triton takes no tensor with more elements."""
MAX_DOT_SIDE = 256


def valid_tilings(analysis: Analysis, device: DeviceDescription, tilings: TilingSet) -> TilingSet:
    """Those that the emitter takes, of all there are."""
    view = analysis.view
    tilings = tilings.where(tilings.blocks(view.kinds[0].dims) < device.block_dim_limit_x)
    mask: Mask | bool = True
    for sizes in dict.fromkeys(node.tile.sizes for node in analysis.nodes):
        mask = mask & tilings.sizes.padded_at_most(sizes, MAX_TENSOR_ELEMENTS)
    tilings = tilings.where(mask)
    values = tilings.sizes
    mask = True
    for condition in analysis.conditions:
        mask = mask & values.satisfied(condition)
    for node in analysis.nodes:
        if node.op in view.roots:
            mask = mask & _root_sizes(node, view.kinds[node.op].dims, values)
        if view.inside[node.op]:
            mask = mask & _emitter_conditions(analysis, node, values)
    return tilings.where(mask)


def _root_sizes(node: TiledNode, dims: Sequence[int], values: Columns) -> Mask | bool:
    """A tile of an output is a power of two or the whole dimension."""
    mask: Mask | bool = True
    for expr, size in zip(node.tile.sizes, dims, strict=True):
        tile = values.value(expr)
        mask = mask & (((tile & (tile - 1)) == 0) | (tile == size))
    return mask


def _emitter_conditions(analysis: Analysis, node: TiledNode, values: Columns) -> Mask | bool:
    """What has to hold once sizes are rounded up to powers of two (`DeriveCustomConstraints`)."""
    kind = analysis.view.kinds[node.op]
    if kind.opcode in ("reshape", "bitcast"):
        own = kind.maps[0]
        tile = symbolic_tile(own) if own is not None else None
        if tile is None or tile.condition == ALWAYS:
            return True
        return Columns([values.padded(e) for e in node.tile.sizes]).satisfied(tile.condition)
    if kind.opcode == "concatenate":
        along = kind.instruction_key[0]
        assert isinstance(along, int)
        if node.tile.offsets[along].value != 0:
            return False
        size = values.padded(node.tile.sizes[along])
        mask: Mask | bool = True
        for dims in kind.operand_dims[:-1]:
            mask = mask & (dims[along] % size == 0)
        stride = Columns([power_of_two_ceil(p) for p in values.parameters]).value(node.tile.strides[along])
        return mask & (stride == 1)
    if kind.opcode == "dot":
        mask = True
        padded = Columns([power_of_two_ceil(p) for p in values.parameters])
        for operand in node.operands:
            for expr in operand.tile.sizes:
                side = padded.value(expr)
                mask = mask & ((side >= 1) & (side <= MAX_DOT_SIDE))
        return mask
    return True
