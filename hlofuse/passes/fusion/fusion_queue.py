"""The order of consumers and of their operands (`ReversePostOrderFusionQueue`)."""

from collections import defaultdict
from collections.abc import Callable

from msgspec import Struct

from hlofuse.analysis.components import Reachability
from hlofuse.analysis.elementwise import is_constant_effective_scalar, is_fusible
from hlofuse.ir import Computation, Instruction, numbered
from hlofuse.rules.verdict import Figures


class ReversePostOrderQueue:
    """Instructions in post-order, taken from the end; new fusions go to the end."""

    def __init__(self, computation: Computation) -> None:
        self._order: list[Instruction | None] = list(computation.post_order())
        self._position = numbered(computation.post_order())
        self._settled = defaultdict[Instruction, set[Instruction]](set)  # Refused to a fusion for good
        self.refused = defaultdict[Instruction, set[Instruction]](set)  # Refused until a user is fused

    def next(self) -> tuple[Instruction, list[int]] | None:
        """The next consumer and its operands still queued and not `settled`, the queue's latest first."""
        order, position = self._order, self._position
        consumer = None
        while order and consumer is None:
            consumer = order.pop()
        if consumer is None:
            return None
        del position[consumer]
        settled = self._settled.get(consumer, ())
        operands = enumerate(consumer.operands)
        places = [(-p, k) for k, o in operands if o not in settled and (p := position.get(o)) is not None]
        return consumer, [k for _, k in sorted(places)]

    def fused(self, fusion: Instruction, producer: Instruction) -> None:
        """`fusion` has just taken `producer` in and is considered next (`OnFusingInstruction`)."""
        self._position[fusion] = len(self._order)
        self._order.append(fusion)
        self.refused[fusion].difference_update(producer.operands)

    def settle(self, fusion: Instruction, producer: Instruction, lasting: bool) -> None:
        """`producer` is refused to `fusion`, for good or until a user of it is fused; XLA asks again."""
        (self._settled if lasting else self.refused)[fusion].add(producer)

    def remove(self, instruction: Instruction) -> None:
        self._order[self._position.pop(instruction)] = None


MayFuse = Callable[[Instruction, int], bool]
"""Would the rules allow fusing the operand of this number into this consumer?"""


def globally_unfusible(computation: Computation, may_fuse: MayFuse) -> dict[Instruction, Figures]:
    """The producers, with what keeps each from being fused everywhere (`ComputeGloballyUnfusible`)."""
    search = _Search(computation, may_fuse)
    for producer in reversed(computation.post_order()):
        if is_effectively_at_most_unary(producer):
            continue
        operands = sum(o.element_count for o in dict.fromkeys(producer.operands))
        if operands <= producer.element_count:
            continue
        found = (search.blocked(producer, u) for u in producer.users)
        blocked = next((b for b in found if b is not None), None) if is_fusible(producer) else {}
        if blocked is not None:
            elements = {"operand_elements": operands, "result_elements": producer.element_count}
            search.unfusible[producer] = {**elements, **blocked}
    return search.unfusible


def is_effectively_at_most_unary(instruction: Instruction) -> bool:
    """At most one operand is as large as the result, by rank (`EffectivelyAtMostUnary`)."""
    rank = max((s.true_rank for s in instruction.shape.leaf_shapes), default=0)
    large = 0
    for operand in instruction.operands:
        if operand.opcode in ("broadcast", "iota") or is_constant_effective_scalar(operand):
            continue
        if (operand.shape.true_rank if operand.is_array else 0) >= rank:
            large += 1
    return large <= 1


class _Search(Struct):
    """Follows the paths from a producer to its users (`CanFuseOnAllPaths`)."""

    _computation: Computation
    _may_fuse: MayFuse
    unfusible: dict[Instruction, Figures] = {}
    _reachability: Reachability | None = None
    _cache: dict[tuple[Instruction, Instruction], Figures | None] = {}

    def blocked(self, producer: Instruction, consumer: Instruction) -> Figures | None:
        """The figures of a path that keeps `producer` out of `consumer`; None if there is none."""
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
    ) -> tuple[Figures | None, Instruction | None]:
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
