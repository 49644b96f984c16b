"""Producers that must go into all of their users or none (`InstructionFusion::ComputeGloballyUnfusible`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hlofuse.analysis.components import Reachability
from hlofuse.analysis.expensive import is_constant_effective_scalar, is_fusible
from hlofuse.ir.graph import Computation, Instruction

MayFuse = Callable[[Instruction, int], bool]
"""Would the rules allow fusing the operand of this number into this consumer?"""


def globally_unfusible(computation: Computation, may_fuse: MayFuse) -> dict[Instruction, dict[str, Any]]:
    """The producers, with what keeps each from being fused everywhere."""
    search = _Search(computation, may_fuse)
    for producer in reversed(computation.post_order()):
        if is_effectively_at_most_unary(producer):
            continue
        operands = sum(o.shape.element_count for o in dict.fromkeys(producer.operands))
        if operands <= producer.shape.element_count:
            continue
        if not is_fusible(producer):
            blocked: dict[str, Any] | None = {}
        else:
            blocked = next(
                (b for u in producer.users if (b := search.blocked(producer, u)) is not None), None
            )
        if blocked is not None:
            figures = {"operand_elements": operands, "result_elements": producer.shape.element_count}
            search.unfusible[producer] = figures | blocked
    return search.unfusible


def is_effectively_at_most_unary(instruction: Instruction) -> bool:
    """At most one operand is as large as the result, by rank (`EffectivelyAtMostUnary`)."""
    rank = max((s.true_rank for s in instruction.shape.subshapes() if s.is_array), default=0)
    large = 0
    for operand in instruction.operands:
        if operand.opcode in ("broadcast", "iota") or is_constant_effective_scalar(operand):
            continue
        if (operand.shape.true_rank if operand.shape.is_array else 0) >= rank:
            large += 1
    return large <= 1


class _Search:
    """Follows the paths from a producer to its users (`CanFuseOnAllPaths`)."""

    def __init__(self, computation: Computation, may_fuse: MayFuse) -> None:
        self.unfusible: dict[Instruction, dict[str, Any]] = {}
        self._computation = computation
        self._may_fuse = may_fuse
        self._reachability: Reachability | None = None
        self._cache: dict[tuple[Instruction, Instruction], dict[str, Any] | None] = {}

    def blocked(self, producer: Instruction, consumer: Instruction) -> dict[str, Any] | None:
        """What keeps `producer` from being fused into `consumer` on some path; None if nothing does."""
        stack = [consumer]
        while stack:
            current = stack[-1]
            key = (producer, current)
            if key in self._cache:
                stack.pop()
                continue
            result, waiting = self._step(producer, current)
            if waiting is not None:
                stack.append(waiting)
                continue
            self._cache[key] = result
            stack.pop()
        return self._cache[producer, consumer]

    def _step(
        self, producer: Instruction, consumer: Instruction
    ) -> tuple[dict[str, Any] | None, Instruction | None]:
        """The answer for one consumer, or the operand whose answer is needed first."""
        if consumer is producer:
            return None, None
        if not is_fusible(consumer):
            return {"blocked_at": consumer.name}, None
        for number, operand in enumerate(consumer.operands):
            if not self._reaches(producer, operand):
                continue
            if operand in self.unfusible or not self._may_fuse(consumer, number):
                return {"blocked_at": consumer.name, "blocked_operand": operand.name}, None
            if operand is producer:
                continue
            key = (producer, operand)
            if key not in self._cache:
                return None, operand
            if self._cache[key] is not None:
                return self._cache[key], None
        return None, None

    def _reaches(self, producer: Instruction, operand: Instruction) -> bool:
        if producer is operand:
            return True
        if not operand.operands and not operand.control_predecessors:
            return False
        if self._reachability is None:
            self._reachability = Reachability(self._computation)
        return self._reachability.reaches(producer, operand)
