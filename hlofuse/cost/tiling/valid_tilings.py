"""Which tilings of a fusion Triton's emitter takes.

Mirrors `triton_emitter_constraints.cc` and `xtile/codegen/tiled_emitter_constraints.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tiling.analysis import Analysis, TiledNode
from hlofuse.cost.tiling.constraints import ALWAYS
from hlofuse.cost.tiling.size_and_stride import symbolic_tile
from hlofuse.cost.tiling.tiling_set import TilingSet
from hlofuse.cost.tiling.tilings import Columns, Mask, power_of_two_ceil

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
