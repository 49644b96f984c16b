"""What the times of one tiling consist of, operand by operand: for explaining, not for deciding."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hlofuse.cost.tiling.fusion_view import FusionView
from hlofuse.ir.graph import Instruction

if TYPE_CHECKING:
    from hlofuse.cost.tiling.tick_columns import KernelTimes
    from hlofuse.cost.tiling.tiled_cost import TilingCosts


class TileRead(NamedTuple):
    """How one operand is read, tile by tile."""

    operand: Instruction
    size: int
    """Bytes of the array."""
    read: int
    """Bytes read by all blocks together."""
    share: float
    """Of the memory bandwidth, what runs as long as those of its tiles attain."""
    ticks: int


def tile_reads(view: FusionView, costs: TilingCosts, times: KernelTimes) -> list[TileRead]:
    """The operands read, in the order the walk from the root meets them; `costs` of a single tiling."""
    found = []
    for op, (total, share) in sorted(costs.reads.items()):
        size = view.kinds[op].byte_size
        read = np.broadcast_to(np.asarray(total), (1,))
        rate = np.broadcast_to(share, (1,))
        ticks = int(times.read(costs.blocks, size, read, rate)[0])
        found.append(TileRead(view.instructions[op], size, int(read[0]), float(rate[0]), ticks))
    return found
