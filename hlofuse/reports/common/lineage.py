"""Names of instructions, followed through a replay.

A pass gives new names to new instructions (`multiply` becomes `broadcast_multiply_fusion`, that becomes
`wrapped_…`), and events use the current names. A lineage maps any of them to the instruction of the final
module that replaces it, and has the content of each fusion.
"""

from collections.abc import Iterable, Iterator

from hlofuse.analysis.async_ops import is_async_end
from hlofuse.analysis.custom_calls import hands_on
from hlofuse.ir.graph import Instruction
from hlofuse.trace import Event

_VIEWS = frozenset({"bitcast", "get-tuple-element"})


class Lineage:
    """Names and contents, as they stand after the events given."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._became: dict[str, str] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._taken_by: dict[str, str] = {}
        self.holders: dict[str, dict[str, None]] = {}
        """Original instruction to the fusions that hold a copy of it (names of their moment)."""
        for event in events:
            self.follow(event)

    def follow(self, event: Event) -> None:
        """Take one more event into account."""
        if event.event == "fuse" and event.fusion is not None:
            self._fuse(event.fusion, event.producer, event.consumer)
        elif event.event == "rewrite" and len(event.added) == 1:
            for name in event.removed:
                if name != event.added[0]:
                    self._rename(name, event.added[0])

    def _fuse(self, fusion: str, producer: str | None, consumer: str | None) -> None:
        if consumer is not None and consumer != fusion:
            self._rename(consumer, fusion)
        members = self._members.setdefault(fusion, {fusion: None})
        if producer is not None:
            self._taken_by[producer] = fusion
            for name in self.members(producer):
                members[name] = None
                self.holders.setdefault(name, {})[fusion] = None

    def _rename(self, old: str, new: str) -> None:
        if self.final(new) == old:
            return  # a name taken over by what came before it
        self._became[old] = new
        members = self._members.pop(old, {old: None})
        self._members.setdefault(new, {}).update(members)
        for name in members:
            holders = self.holders.setdefault(name, {})
            holders.pop(old, None)
            holders[new] = None

    def final(self, name: str) -> str:
        """The final name of this instruction; its own where nothing replaced it."""
        became = self._became
        path = []
        while name in became:
            path.append(name)
            name = became[name]
        for step in path[:-1]:
            became[step] = name
        return name

    def taken_by(self, name: str) -> str | None:
        """The fusion that took this producer in last."""
        return self._taken_by.get(name)

    def members(self, name: str) -> list[str]:
        """The original instructions inside, in the order they came; for an original, itself."""
        return list(self._members.get(name, {name: None}))

    def kernels_of(self, name: str) -> list[str]:
        """The final fusions that hold a copy of an original instruction; itself if it was never fused."""
        found = dict.fromkeys(self.final(h) for h in self.holders.get(name, ()))
        return list(found) or [self.final(name)]

    def names(self) -> set[str]:
        """Every intermediate name."""
        return {*self._became, *self._became.values(), *self._members, *self.holders}


def is_view(instruction: Instruction) -> bool:
    """It computes nothing and moves nothing: a bitcast, an annotation, the done of an operation."""
    opcode = instruction.opcode
    return opcode in _VIEWS or is_async_end(opcode) or (opcode == "custom-call" and hands_on(instruction))


def through_views(instruction: Instruction) -> Instruction:
    """The instruction that computes the value of a view."""
    while is_view(instruction) and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def readers(instruction: Instruction) -> Iterator[Instruction]:
    """The readers of its value, directly or through views; each once, in the order of users."""
    stack, seen = [instruction], {instruction}
    while stack:
        for user in stack.pop().users:
            if user not in seen:
                seen.add(user)
                if is_view(user):
                    stack.append(user)
                else:
                    yield user


def view_read(producer: Instruction, consumer: Instruction) -> Instruction | None:
    """The user of `producer` through which `consumer` reads it: itself, or a view; None if it does not."""
    if producer in consumer.operands:
        return consumer
    for operand in consumer.operands:
        user = consumer
        while operand is not producer and is_view(operand) and operand.operands:
            user, operand = operand, operand.operands[0]
        if operand is producer:
            return user
    return None
