"""The places of buffers that are not needed at the same time: XLA's best fit by decreasing size
(`xla/service/heap_simulator/heap_simulator.cc`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.hlo_alias import HloAlias, HloBuffer
from hlofuse.analysis.hlo_value import HloValue
from hlofuse.memory.live_ranges import LiveRanges


@dataclass(eq=False, slots=True)
class Block:
    """Values at the same place, which was reserved for the first of them."""

    size: int
    values: list[HloValue]
    starts: list[int]
    ends: list[int] = field(default_factory=list)
    """The numbers of the events that end the values; -1 before."""
    offset: int = 0


def simulate(
    values: Collection[HloValue],
    alias: HloAlias,
    live: LiveRanges,
    sizes: Mapping[HloBuffer, int],
    info: AliasInfo,
) -> list[Block]:
    """The places of values, with the events of each (`HeapSimulator::RunComputation`)."""
    return _Simulation(values, alias, live, sizes, info).blocks


class _Simulation:
    def __init__(
        self,
        values: Collection[HloValue],
        alias: HloAlias,
        live: LiveRanges,
        sizes: Mapping[HloBuffer, int],
        info: AliasInfo,
    ) -> None:
        self.blocks: list[Block] = []
        self._alias = alias
        self._info = info
        self._events = 0
        self._place: dict[HloValue, tuple[Block, int]] = {}
        self._freed: dict[int, dict[HloValue, None]] = {}
        defined: dict[int, list[HloValue]] = {}
        for start, end, _, value in sorted((*live.ranges[v], v.id, v) for v in values):
            defined.setdefault(start, []).append(value)
            self._freed.setdefault(end, {})[value] = None
        first: dict[HloBuffer, Block] = {}
        for moment in sorted({*defined, *self._freed}):
            for value in defined.get(moment, ()):
                buffer = alias.buffer_of(value)
                block = first.get(buffer)
                if block is None and len(buffer.values) == 1:
                    block = self._block_of_operand(value, moment)
                elif block is None:
                    block = first[buffer] = Block(sizes[buffer], [], [])
                    self.blocks.append(block)
                if block is None:
                    block = Block(sizes[buffer], [], [])
                    self.blocks.append(block)
                self._begin(value, block)
            for value in self._freed.get(moment, ()):
                self._end(value)

    def _block_of_operand(self, value: HloValue, moment: int) -> Block | None:
        """The place of an operand that is read for the last time and may be overwritten."""
        x, freed = value.instruction, self._freed.get(moment, {})
        if x.opcode == "copy":
            return None
        dataflow = self._alias.dataflow
        for operand in x.operands:
            source = dataflow.value_at(operand)
            if source is None or source not in freed:
                continue
            if len(self._alias.buffer_of(source).values) > 1 or source.instruction not in x.operands:
                continue
            if self._info.can_share(dataflow, source.instruction, source.index, x, value.index):
                self._end(source)
                del freed[source]
                return self._place[source][0]
        return None

    def _begin(self, value: HloValue, block: Block) -> None:
        self._place[value] = block, len(block.values)
        block.values.append(value)
        block.starts.append(self._events)
        block.ends.append(-1)
        self._events += block.size > 0  # XLA does not note what takes no place

    def _end(self, value: HloValue) -> None:
        block, number = self._place[value]
        block.ends[number] = self._events
        self._events += block.size > 0  # XLA does not note what takes no place


def pack(blocks: Collection[Block], alignment: int) -> int:
    """Give every block its offset, and return the bytes of all together (`ChooseBestHeapAlgorithm`).

    Of two orders, the largest or the longest lived first, the one that needs less counts.
    """
    placed = [b for b in blocks if b.size]
    best: list[int] | None = None
    least = 0
    for key in (_by_size, _by_duration):
        size = _pack_in_order(sorted(placed, key=key), alignment)
        if best is None or size < least:
            best, least = [b.offset for b in placed], size
    for block, offset in zip(placed, best or (), strict=True):
        block.offset = offset
    return least


def _by_size(block: Block) -> tuple[int, ...]:
    return -block.size, block.starts[0] - block.ends[0], block.values[0].id


def _by_duration(block: Block) -> tuple[int, ...]:
    return min(block.starts) - max(block.ends), -block.size, block.values[0].id


def _pack_in_order(blocks: list[Block], alignment: int) -> int:
    """`AllocateBuffersInSingleHeap`."""
    used = _Occupied(sum(len(b.values) for b in blocks))
    size = 0
    for block in blocks:
        padded = -(-block.size // alignment) * alignment
        block.offset = used.best_fit(block, padded)
        size = max(size, block.offset + block.size)
        used.add(block, block.offset + padded)
    return size


class _Occupied:
    """Chunks, each from its begin to its padded end, with the first and the last event of their time."""

    def __init__(self, most: int) -> None:
        self._count = 0
        self._firsts, self._lasts, self._begins, self._ends = np.zeros((4, most), np.int64)

    def add(self, block: Block, end: int) -> None:
        """Occupy its chunk whenever one of its values lives."""
        new = slice(self._count, self._count + len(block.values))
        self._firsts[new], self._lasts[new] = block.starts, block.ends
        self._begins[new], self._ends[new] = block.offset, end
        self._count = new.stop

    def best_fit(self, block: Block, size: int) -> int:
        """The begin of the smallest gap of at least `size` among the chunks of the same time.

        Before a begin that as many ends precede as begins, nothing is occupied.
        """
        firsts, lasts = self._firsts[: self._count], self._lasts[: self._count]
        is_used = np.zeros(self._count, bool)
        for first, last in zip(block.starts, block.ends, strict=True):
            is_used |= (firsts <= last) & (lasts >= first)
        begins = np.sort(self._begins[: self._count][is_used])
        ends = np.sort(self._ends[: self._count][is_used])
        if not len(begins):
            return 0
        before = np.concatenate(([0], ends[:-1]))
        rooms = begins - before
        fitting = np.flatnonzero(rooms >= size)
        return int(before[fitting[rooms[fitting].argmin()]] if len(fitting) else ends[-1])
