"""Producers by priority, the greatest unique id first among equals (the queue of `PriorityFusionQueue`)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TypeAlias

from hlofuse.ir.instruction import Instruction

Chooser: TypeAlias = Callable[[Sequence[Instruction]], Instruction]
"""Picks one of several producers with the same, greatest priority."""


class PriorityQueue:
    """Entries that were changed or removed stay in the heap until they come to its top.

    One that has become a fusion since comes with its new id, which is greater, ahead of its old one.
    """

    def __init__(self, choose: Chooser | None = None) -> None:
        self._heap: list[tuple[int, int, Instruction]] = []
        self._priority: dict[Instruction, int] = {}
        self._choose = choose
        self._equal: dict[Instruction, tuple[int, int, Instruction]] = {}
        """Those of the greatest priority, out of the heap until one after the other is chosen."""

    def __contains__(self, producer: Instruction) -> bool:
        return producer in self._priority

    def priority(self, producer: Instruction) -> int:
        return self._priority[producer]

    def set(self, producer: Instruction, priority: int) -> None:
        """Put the producer in, or move it."""
        if self._priority.get(producer) != priority:
            if self._equal:
                self._equal.pop(producer, None)
            self._priority[producer] = priority
            heapq.heappush(self._heap, (-priority, -producer.id, producer))

    def discard(self, producer: Instruction) -> None:
        self._priority.pop(producer, None)
        if self._equal:
            self._equal.pop(producer, None)

    def pop(self) -> tuple[Instruction, int] | None:
        """Take out the producer whose turn it is, with its priority; None when none is left."""
        if self._choose is not None:
            return self._pop_chosen(self._choose)
        heap, current = self._heap, self._priority
        while heap:
            negative, _, producer = heapq.heappop(heap)
            if current.get(producer) == -negative:
                del current[producer]
                return producer, -negative
        return None

    def _pop_chosen(self, choose: Chooser) -> tuple[Instruction, int] | None:
        heap, current, equal = self._heap, self._priority, self._equal
        if equal and heap and heap[0][0] < next(iter(equal.values()))[0]:  # one that is greater has come
            for entry in equal.values():
                heapq.heappush(heap, entry)
            equal.clear()
        left = len(equal)
        while heap and (not equal or heap[0][0] == next(iter(equal.values()))[0]):
            entry = heapq.heappop(heap)
            negative, _, producer = entry
            if current.get(producer) == -negative:
                equal.setdefault(producer, entry)
        if not equal:
            return None
        if 0 < left < len(equal):
            equal = self._equal = dict(sorted(equal.items(), key=lambda item: item[1]))
        chosen = choose(list(equal))
        del equal[chosen]
        return chosen, current.pop(chosen)
