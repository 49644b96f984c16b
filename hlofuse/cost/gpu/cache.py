"""What a model keeps of an instruction until that changes."""

from __future__ import annotations

from typing import Any, TypeAlias

from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.pair import SummaryPair
from hlofuse.ir.graph import Instruction

Timed: TypeAlias = SummaryPair | Estimate
"""What has the ticks of a pair: its structure if they are all that was asked for."""


class CacheEntry:
    """The cache's entries of one instruction (`GpuPerformanceModelCache`), and whether it may be fused."""

    __slots__ = ("answers", "run", "times")

    run: Estimate | None
    times: dict[Instruction, Timed]
    """With it in each of its users."""
    answers: dict[Instruction, Any]
    """For each user what somebody has found out of the two: the structure if one may go into the other,
    otherwise whatever says why not."""

    def __init__(self) -> None:
        self.run = None
        self.times = {}
        self.answers = {}


class EstimateCache(dict[Instruction, CacheEntry]):
    """What is kept of each instruction; nothing yet where nobody has asked."""

    def __missing__(self, instruction: Instruction) -> CacheEntry:
        entry = self[instruction] = CacheEntry()
        return entry

    def copy(self) -> EstimateCache:
        """Another one, in which others may keep more."""
        new = EstimateCache()
        for instruction, source in self.items():
            entry = new[instruction]
            entry.run, entry.times, entry.answers = source.run, dict(source.times), dict(source.answers)
        return new
