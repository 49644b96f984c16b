"""Which consumer is next, and its operands in which order (`ReversePostOrderFusionQueue`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from hlofuse.ir.graph import Computation, Instruction


class ReversePostOrderQueue:
    """Instructions in post-order, taken from the end; new fusions go to the end."""

    def __init__(self, computation: Computation) -> None:
        self._order: list[Instruction | None] = list(computation.post_order())
        self._position = {x: k for k, x in enumerate(self._order) if x is not None}
        self._open: dict[Instruction, list[tuple[int, Instruction]]] = {}
        """Of a fusion that was refused operands for good: those it may still take in, by their places from
        the end. The place of what is queued changes only when it is considered."""
        self._settled: dict[Instruction, set[Instruction]] = {}

    def next(self) -> tuple[Instruction, Iterator[int]] | None:
        """The next consumer, and the numbers of its operands that are open, latest in the queue first.

        Open is an operand that is still queued and not `settled`.
        """
        order, position = self._order, self._position
        while order and order[-1] is None:
            order.pop()
        if not order:
            return None
        consumer = order.pop()
        assert consumer is not None
        del position[consumer]
        operands, candidates = consumer.operands, self._open.get(consumer)
        if candidates is not None:  # a fusion reads each operand once
            return consumer, self._numbers(operands, candidates)
        place = position.get
        numbers = [(-p, k) for k, p in enumerate(map(place, operands)) if p is not None]
        numbers.sort()
        return consumer, (k for _, k in numbers)

    def fused(self, fusion: Instruction, producer: Instruction) -> None:
        """`fusion` has just taken `producer` in and is considered next (`OnFusingInstruction`)."""
        self._position[fusion] = len(self._order)
        self._order.append(fusion)
        candidates = self._open.get(fusion)
        if candidates is not None:
            self._close(fusion, producer)
            settled, position = self._settled[fusion], self._position
            for o in producer.operands:
                if o in position and o not in settled:
                    at = bisect_left(candidates, (-position[o],))
                    if at == len(candidates) or candidates[at][1] is not o:
                        candidates.insert(at, (-position[o], o))

    def settle(self, fusion: Instruction, producer: Instruction) -> None:
        """`producer` is refused to `fusion` for good: XLA asks again each time the fusion has grown."""
        if fusion not in self._open:
            position = self._position
            self._open[fusion] = sorted((-position[o], o) for o in fusion.operands if o in position)
            self._settled[fusion] = set()
        self._close(fusion, producer)
        self._settled[fusion].add(producer)

    def _numbers(
        self, operands: Sequence[Instruction], candidates: list[tuple[int, Instruction]]
    ) -> Iterator[int]:
        position, at = self._position, 0
        while at < len(candidates):
            place, operand = candidates[at]
            if position.get(operand) == -place:
                yield operands.index(operand)
            at = bisect_left(candidates, (place + 1,))

    def _close(self, fusion: Instruction, producer: Instruction) -> None:
        candidates = self._open[fusion]
        at = bisect_left(candidates, (-self._position[producer],))
        if at < len(candidates) and candidates[at][1] is producer:
            del candidates[at]

    def remove(self, instruction: Instruction) -> None:
        """`instruction` is gone from the computation."""
        self._order[self._position.pop(instruction)] = None
