"""A run time and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.ticks import INFINITE


@dataclass(slots=True)
class Estimate:
    """`EstimateRunTimeData`. Times are ticks of 0.25 ns."""

    ticks: int
    """`exec_time`: compute and memory, overlapping."""
    flops: int
    bytes_read: int
    bytes_written: int
    read: int
    write: int
    compute: int
    launch: Launch
    coalesced: bool

    @property
    def is_infinite(self) -> bool:
        return self.ticks >= INFINITE

    @property
    def memory(self) -> int:
        """Ticks of reading and writing."""
        return self.read + self.write

    @property
    def bound_by(self) -> str:
        """`memory` or `compute`, whichever takes longer."""
        return "compute" if self.compute > self.memory else "memory"
