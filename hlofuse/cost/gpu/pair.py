"""Pairs of a producer and a consumer, one object for all pairs of equal structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hlofuse.cost.gpu.backend_config import FusionConfig
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.heroes import Root, fuse_root
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.summary import Summary
from hlofuse.cost.gpu.ticks import EXACT, fp32
from hlofuse.ir.graph import Instruction

_MOST_SPLITS = 32
"""More than ten are too many anyway."""


@dataclass(slots=True, init=False, eq=False)
class SummaryPair:
    """The structures of two instructions and which operands they share: equal pairs fuse to equal fusions.

    What is worked out for one pair of instructions is kept here for all like it.
    """

    producer: Summary
    consumer: Summary
    slot: int
    """The first slot of the producer among the consumer's operands."""
    shared: Sequence[int | None]
    """For each of the producer's operands the slot where the consumer reads it too, or None. Empty where
    they share none."""
    launch: Launch | None
    ticks: int
    """Its time where nothing inside reads across the grain of memory, which is all that a pass asks of most
    pairs; -1 until it is worked out."""
    estimates: dict[bool, Estimate] | None
    """All there is to say of that time, by whether something inside reads across the grain of memory."""
    fused: dict[FusionConfig | None, Summary] | None
    """The summary of the two fused, by the fusion's config."""
    _roots: Sequence[Root] | None

    @property
    def roots(self) -> Sequence[Root]:
        """The consumer's roots as they are with the producer in."""
        roots = self._roots
        if roots is None:
            b, slot, inside = self.consumer, self.slot, self.producer.roots[0]
            clean = b.clean[slot]
            roots = self._roots = [fuse_root(root, clean, slot, inside) for root in b.roots]
        return roots

    @property
    def merged_ir_size(self) -> int:
        """Instructions emitted after fusing, copies counted; each new block doubles them."""
        a, b = self.producer, self.consumer
        copies = b.parameter_ir_size[self.slot]
        size = a.ir_size * copies
        total = size + b.ir_size
        if a.splits or b.splits:
            return int(total) << min(int(copies * a.splits + b.splits), _MOST_SPLITS)
        return int(total) if total < EXACT else int(fp32(fp32(size) + b.ir_size))

    @property
    def slots(self) -> list[int]:
        """All slots at which the consumer reads the producer."""
        return self.consumer.slots_like(self.slot)


def _slot_of_result(operands: Sequence[Instruction], producer: Instruction) -> int:
    """The first place where one of several results of a finished kernel is read."""
    return next(
        k for k, o in enumerate(operands) if o.opcode == "get-tuple-element" and o.operands[0] is producer
    )


class PairTable:
    """Finds the pair of two instructions."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[Any, ...], SummaryPair] = {}

    def of(
        self, producer: Instruction, first: Summary, consumer: Instruction, second: Summary
    ) -> SummaryPair:
        """`first` and `second` are the summaries of the two."""
        operands = consumer.operands
        shared: Sequence[int | None] = ()
        if len(operands) == 1:
            slot = 0
        else:
            try:
                slot = operands.index(producer)
            except ValueError:
                slot = _slot_of_result(operands, producer)
            incoming = producer.operands
            for operand in incoming:
                # What only the producer uses the consumer does not; most pairs share nothing.
                if len(operand.users) > 1 and operand in operands:
                    shared = tuple([operands.index(o) if o in operands else None for o in incoming])
                    break
        key = (first.number, second.number, slot, shared)
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = SummaryPair()
            pair.producer, pair.consumer, pair.slot, pair.shared = first, second, slot, shared
            pair.launch = pair._roots = pair.fused = pair.estimates = None
            pair.ticks = -1
        return pair


# What a model keeps of an instruction until that changes.

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
