"""Producers by priority, the greatest unique id first among equals (the queue of `PriorityFusionQueue`)."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

from hlofuse.ir.graph import Instruction

Chooser: TypeAlias = Callable[[Sequence[Instruction]], Instruction]
"""Picks one of several producers with the same, greatest priority."""
_ID_BITS = 32


class PriorityQueue:
    """Entries that were changed or removed stay in the heap until they come to its top.

    One that has become a fusion since comes with its new id, which is greater, ahead of its old one.
    """

    def __init__(self, choose: Chooser | None = None) -> None:
        self.waiting: dict[Instruction, int] = {}
        """Queued instructions with their priorities."""
        self._heap: list[int] = []
        """Priority and, in the last bits, id, as one number, negative: two are compared at once."""
        self._of: dict[int, Instruction] = {}
        """The producer of each entry."""
        self._choose = choose
        self._equal: dict[Instruction, int] = {}
        """Instructions of the greatest priority, taken from the heap until each is chosen."""

    def set(self, producer: Instruction, priority: int) -> None:
        """Put the producer in, or move it."""
        if self.waiting.get(producer) != priority:
            if self._equal:
                self._equal.pop(producer, None)
            self.waiting[producer] = priority
            entry = -(priority << _ID_BITS) - producer.id
            self._of[entry] = producer
            heappush(self._heap, entry)

    def discard(self, producer: Instruction) -> None:
        self.waiting.pop(producer, None)
        if self._equal:
            self._equal.pop(producer, None)

    def is_tied(self, priority: int, producer: Instruction) -> bool:
        """It waits with that priority."""
        return self.waiting.get(producer) == priority

    def pop(self) -> tuple[Instruction, int] | None:
        """Take out the producer whose turn it is, with its priority; None when none is left."""
        if self._choose is not None:
            return self._pop_chosen(self._choose)
        heap, waiting, of = self._heap, self.waiting, self._of
        while heap:
            entry = heappop(heap)
            producer, priority = of[entry], -entry >> _ID_BITS
            if waiting.get(producer) == priority:
                del waiting[producer]
                return producer, priority
        return None

    def _pop_chosen(self, choose: Chooser) -> tuple[Instruction, int] | None:
        heap, waiting, equal = self._heap, self.waiting, self._equal
        greatest = -next(iter(equal.values())) >> _ID_BITS if equal else 0
        if equal and heap and -heap[0] >> _ID_BITS > greatest:  # one that is greater has come
            for entry in equal.values():
                heappush(heap, entry)
            equal.clear()
        left = len(equal)
        while heap and (not equal or -heap[0] >> _ID_BITS == greatest):
            entry = heappop(heap)
            producer = self._of[entry]
            greatest = -entry >> _ID_BITS
            if waiting.get(producer) == greatest:
                equal.setdefault(producer, entry)
        if not equal:
            return None
        if 0 < left < len(equal):
            equal = self._equal = dict(sorted(equal.items(), key=lambda item: item[1]))
        chosen = choose(list(equal))
        del equal[chosen]
        return chosen, waiting.pop(chosen)
