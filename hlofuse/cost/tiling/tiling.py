"""The outcome of the tiled model."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.cost.tiling.block_level import BlockLevelParameters


@dataclass(frozen=True, slots=True)
class Tiling:
    """One tiling with its cost. Times are ticks of 0.25 ns."""

    exec_time: int
    tile_sizes: tuple[tuple[int, ...], ...]
    """Of each output."""
    num_warps: int
    compute_time: int
    read_time: int
    write_time: int
    flops: int
    bytes_read: int
    bytes_written: int
    blocks: int
    threads: int
    """In a block."""
    candidates: int
    """Tilings this was chosen from."""
    parameters: tuple[int, ...] = ()
    """Of every tiled dimension, those that a dot sums over included."""

    @property
    def block_level(self) -> BlockLevelParameters:
        """What goes into the backend config of the fusion."""
        return BlockLevelParameters(self.tile_sizes, self.num_warps)
