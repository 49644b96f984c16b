"""The values of each buffer in the order in which they are there, as lists that can be joined.

Mirrors `CopyRemover::ValueNode` and the order that its constructor gives them
(`xla/service/copy_removal.cc`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key

from hlofuse.analysis.hlo_ordering import HloOrdering
from hlofuse.analysis.hlo_value import HloUse, HloValue
from hlofuse.ir.graph import Computation, Instruction, Module


class ValueNode:
    """One value of a buffer between those before and after it; after the last one comes the first."""

    __slots__ = ("next", "prev", "uses", "value")

    def __init__(self, value: HloValue) -> None:
        self.value = value
        self.uses: list[HloUse] = list(value.uses)
        """Kept while copies go, unlike those of the value."""
        self.prev = self.next = self


class ValueLists:
    """All lists, each known by its first value."""

    def __init__(self) -> None:
        self._heads: set[ValueNode] = set()

    def add(self, values: Iterable[HloValue]) -> list[ValueNode]:
        """A new list of these values in order."""
        nodes = [ValueNode(value) for value in values]
        for k, node in enumerate(nodes):
            node.next = nodes[(k + 1) % len(nodes)]
            node.prev = nodes[k - 1]
        self._heads.add(nodes[0])
        return nodes

    def is_first(self, node: ValueNode) -> bool:
        return node in self._heads

    def is_last(self, node: ValueNode) -> bool:
        return node.next in self._heads

    def after(self, node: ValueNode) -> ValueNode | None:
        """The next one; None at the end (`Next`)."""
        return None if self.is_last(node) else node.next

    def before(self, node: ValueNode) -> ValueNode | None:
        """The one before; None at the start (`Prev`)."""
        return None if self.is_first(node) else node.prev

    def onward(self, node: ValueNode | None) -> Iterator[ValueNode]:
        """From it to the end."""
        while node is not None:
            yield node
            node = self.after(node)

    def backward(self, node: ValueNode | None) -> Iterator[ValueNode]:
        """From it to the start."""
        while node is not None:
            yield node
            node = self.before(node)

    def splice(self, head: ValueNode, after: ValueNode) -> None:
        """Put a whole list into another one (`SpliceAfter`)."""
        self._heads.discard(head)
        last = head.prev
        last.next, after.next.prev = after.next, last
        after.next, head.prev = head, after

    def remove(self, node: ValueNode) -> None:
        node.prev.next, node.next.prev = node.next, node.prev
        if node in self._heads:
            self._heads.discard(node)
            if node.next is not node:
                self._heads.add(node.next)


class ValueOrder:
    """The order in which the values of a buffer come to be."""

    def __init__(self, module: Module, ordering: HloOrdering) -> None:
        self._ordering = ordering
        self._place = {x: k for k, x in enumerate(_numbered(module, ordering))}

    def sorted(self, values: Iterable[HloValue]) -> list[HloValue]:
        """The values from the first to the last."""
        return sorted(values, key=cmp_to_key(self._compare))

    def _compare(self, a: HloValue, b: HloValue) -> int:
        if a is b:
            return 0
        before = self._ordering.is_defined_before
        is_smaller = self._place.get(a.instruction, 0) < self._place.get(b.instruction, 0)
        first, second = (a, b) if is_smaller else (b, a)
        if before(first, second):
            return -1 if is_smaller else 1
        if before(second, first):
            return 1 if is_smaller else -1
        return -1 if is_smaller else 1


def _numbered(module: Module, ordering: HloOrdering) -> Iterator[Instruction]:
    """All instructions, what is called before its caller, parameters first."""
    seen: set[Computation] = set()
    for start in (module.entry, *module.computations):
        if start in seen:
            continue
        seen.add(start)
        pending = [(start, _rest(start, ordering))]
        yield from start.parameters
        waiting: list[Instruction] = []
        while pending:
            computation, rest = pending[-1]
            x = waiting.pop() if waiting and waiting[-1].computation is computation else next(rest, None)
            if x is None:
                pending.pop()
                continue
            inner = next((c for c in _called(x) if c not in seen), None)
            if inner is None:
                yield x
                continue
            waiting.append(x)
            seen.add(inner)
            yield from inner.parameters
            pending.append((inner, _rest(inner, ordering)))


def _rest(computation: Computation, ordering: HloOrdering) -> Iterator[Instruction]:
    return (x for x in ordering.sequence(computation) if x.opcode != "parameter")


def _called(x: Instruction) -> list[Computation]:
    if x.opcode == "while":
        parts = dict(x.called)
        return [parts["condition"], parts["body"]]
    return [c for _, c in x.called]
