"""The strict mode of the matcher: each instruction has a counterpart, or the modules differ."""

from collections.abc import Container, Hashable

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.grouping import grouped
from hlofuse.matching.key import Keys, Strictness, payload, result


def counterparts(one: Module, other: Module) -> dict[Instruction, Instruction] | None:
    """The instruction of `other` for each of `one`; None as soon as the modules differ.

    Parameters and roots correspond, and so do their operands. Dead instructions are matched by their
    operands. Unread get-tuple-elements have none: XLA's texts omit them.
    """
    return _Counterparts().find(one, other)


class _Counterparts:
    """Pairs found so far, and paired computations whose instructions are still to be paired."""

    def __init__(self) -> None:
        self._keys = Keys(Strictness.COMPUTED)
        self._other_of: dict[Instruction, Instruction] = {}
        self._taken: set[Instruction] = set()
        self._computations: dict[Computation, Computation] = {}
        self._waiting: list[tuple[Computation, Computation]] = []

    def find(self, one: Module, other: Module) -> dict[Instruction, Instruction] | None:
        """The pairs, or None where the modules differ."""
        self._pair_computations(one.entry, other.entry)
        while self._waiting:
            if not self._match(*self._waiting.pop()):
                return None
        called = [c for c in one.computations if c.callers or c is one.entry]
        return self._other_of if all(c in self._computations for c in called) else None

    def _pair_computations(self, one: Computation, other: Computation) -> bool:
        paired = self._computations.get(one)
        if paired is None:
            self._computations[one] = other
            self._waiting.append((one, other))
        return paired in (None, other)

    def _match(self, one: Computation, other: Computation) -> bool:
        if len(one.parameters) != len(other.parameters):
            return False
        start = [*zip(one.parameters, other.parameters, strict=True), (one.root, other.root)]
        return self._match_operands(start) and self._match_dead(
            _left(one, self._other_of), _left(other, self._taken)
        )

    def _match_operands(self, stack: list[tuple[Instruction, Instruction]]) -> bool:
        while stack:
            a, b = stack.pop()
            paired = self._other_of.get(a)
            if paired is None:
                if not self._pair(a, b):
                    return False
                stack.extend(zip(a.operands, b.operands, strict=True))
            elif paired is not b:
                return False
        return True

    def _match_dead(self, some: list[Instruction], others: list[Instruction]) -> bool:
        """Match dead instructions, operands before users, so that the operands have counterparts."""
        if len(some) != len(others):
            return False
        readers = grouped((tuple(b.operands), b) for b in others)
        for a in some:
            if any(o not in self._other_of for o in a.operands):
                return False
            candidates = readers.get(tuple(self._other_of[o] for o in a.operands), [])
            found = next((b for b in candidates if b not in self._taken and self._agree(a, b)), None)
            if found is None or not self._pair(a, found):
                return False
        return True

    def _pair(self, one: Instruction, other: Instruction) -> bool:
        """Add the pair; False where they differ, or call computations paired otherwise."""
        if other in self._taken or len(one.operands) != len(other.operands):
            return False
        # An array elided in one text equals any.
        hidden = one.opcode == "constant" == other.opcode and (
            one.literal.is_elided or other.literal.is_elided
        )
        if not self._agree(one, other, hidden=hidden):
            return False
        self._other_of[one] = other
        self._taken.add(other)
        called = zip(one.called_computations, other.called_computations, strict=True)
        return all(self._pair_computations(a, b) for a, b in called)

    def _agree(self, one: Instruction, other: Instruction, *, hidden: bool = False) -> bool:
        """True if all but operands and called computations is equal (with `hidden`, but elements, too)."""
        return self._content(one, hidden) == self._content(other, hidden)

    def _content(self, x: Instruction, hidden: bool) -> Hashable:
        text = "" if hidden else payload(x)
        return (x.opcode, result(x).key, self._keys.attributes(x.attributes), text, len(x.called))


def _left(computation: Computation, paired: Container[Instruction]) -> list[Instruction]:
    """The instructions that are not paired, without unread elements of tuples."""
    return [
        x
        for x in computation.post_order()
        if x not in paired and (x.users or x.opcode != "get-tuple-element")
    ]
