"""Which consumer is next, and its operands in which order (`ReversePostOrderFusionQueue`)."""

from __future__ import annotations

from hlofuse.ir.graph import Computation, Instruction


class ReversePostOrderQueue:
    """Instructions in post-order, taken from the end; new fusions go to the end."""

    def __init__(self, computation: Computation) -> None:
        self._order: list[Instruction | None] = list(computation.post_order())
        self._position = {x: k for k, x in enumerate(self._order) if x is not None}

    def next(self) -> tuple[Instruction, list[int]] | None:
        """The next consumer, and the numbers of its operands still queued, latest in the queue first."""
        order, position = self._order, self._position
        while order and order[-1] is None:
            order.pop()
        if not order:
            return None
        consumer = order.pop()
        assert consumer is not None
        del position[consumer]
        operands = consumer.operands
        numbers = [k for k, o in enumerate(operands) if o in position]
        numbers.sort(key=lambda k: -position[operands[k]])
        return consumer, numbers

    def fused(self, fusion: Instruction) -> None:
        """`fusion` has just taken a producer in and is considered next (`OnFusingInstruction`)."""
        self._position[fusion] = len(self._order)
        self._order.append(fusion)

    def remove(self, instruction: Instruction) -> None:
        """`instruction` is gone from the computation."""
        self._order[self._position.pop(instruction)] = None
