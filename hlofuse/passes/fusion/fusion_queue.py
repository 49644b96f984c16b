"""Which consumer is next, and its operands in which order (`ReversePostOrderFusionQueue`)."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir.graph import Computation, Instruction


class ReversePostOrderQueue:
    """Instructions in post-order, taken from the end; new fusions go to the end."""

    def __init__(self, computation: Computation) -> None:
        self._order: list[Instruction | None] = list(computation.post_order())
        self._position = {x: k for k, x in enumerate(self._order) if x is not None}
        self._open: dict[Instruction, dict[Instruction, None]] = {}
        """Of a fusion that was refused operands for good: those it may still take in."""
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
            found = sorted((-position[o], o) for o in candidates if o in position)
            return consumer, (operands.index(o) for _, o in found)
        numbers = sorted((-position[o], k) for k, o in enumerate(operands) if o in position)
        return consumer, (k for _, k in numbers)

    def fused(self, fusion: Instruction, producer: Instruction) -> None:
        """`fusion` has just taken `producer` in and is considered next (`OnFusingInstruction`)."""
        self._position[fusion] = len(self._order)
        self._order.append(fusion)
        candidates = self._open.get(fusion)
        if candidates is not None:
            candidates.pop(producer, None)
            settled = self._settled[fusion]
            candidates.update((o, None) for o in producer.operands if o not in settled)

    def settle(self, fusion: Instruction, producer: Instruction) -> None:
        """`producer` is refused to `fusion` for good: XLA asks again each time the fusion has grown."""
        if fusion not in self._open:
            self._open[fusion] = dict.fromkeys(fusion.operands)
            self._settled[fusion] = set()
        self._open[fusion].pop(producer, None)
        self._settled[fusion].add(producer)

    def remove(self, instruction: Instruction) -> None:
        """`instruction` is gone from the computation."""
        self._order[self._position.pop(instruction)] = None
