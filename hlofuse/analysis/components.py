"""What lies on cycles of a graph."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from hlofuse.ir.graph import Computation, Instruction

T = TypeVar("T", bound=Hashable)


def components(edges: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """The strongly connected components of more than one node, as Tarjan finds them.

    R. Tarjan, "Depth-first search and linear graph algorithms", 1972; iterative, as graphs here are deep.
    Every node is a key of `edges`, with those that it leads to.
    """
    found: list[list[T]] = []
    index: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    place: dict[T, int] = {}
    closed: set[T] = set()
    for start in edges:
        pending: list[tuple[T, Iterator[T]]] = [(start, iter(edges[start]))] if start not in index else []
        while pending:
            here, rest = pending[-1]
            if here not in index:
                index[here] = low[here] = len(index)
                place[here] = len(stack)
                stack.append(here)
            for there in rest:
                if there not in index:
                    pending.append((there, iter(edges[there])))
                    break
                if there not in closed:
                    low[here] = min(low[here], index[there])
            else:
                pending.pop()
                if pending:
                    reader = pending[-1][0]
                    low[reader] = min(low[reader], low[here])
                if low[here] == index[here]:
                    at = place[here]
                    if len(stack) - at > 1:
                        found.append(stack[at:])
                    closed.update(stack[at:])
                    del stack[at:]
    return found


class Reachability:
    """For each instruction the set of those that reach it, one bit for each instruction
    (`HloReachabilityMap`).

    A snapshot: instructions added later are not present.
    """

    def __init__(self, computation: Computation) -> None:
        order = computation.post_order()
        self._index: dict[Instruction, int] = {x: k for k, x in enumerate(order)}
        self._rows: list[int] = []
        index, rows = self._index, self._rows
        for k, x in enumerate(order):
            row = 1 << k
            for source in x.operands:
                row |= rows[index[source]]
            for source in x.control_predecessors:
                row |= rows[index[source]]
            rows.append(row)

    def __contains__(self, instruction: Instruction) -> bool:
        """`IsPresent`."""
        return instruction in self._index

    def reaches(self, a: Instruction, b: Instruction) -> bool:
        """True if `b` depends on `a` or is `a` (`IsReachable`)."""
        return bool(self._rows[self._index[b]] >> self._index[a] & 1)

    def connected(self, a: Instruction, b: Instruction) -> bool:
        """True if either depends on the other (`IsConnected`)."""
        return self.reaches(a, b) or self.reaches(b, a)

    def replace(self, old: Instruction, new: Instruction) -> None:
        """`new` stands where `old` stood (`Replace`)."""
        self._index[new] = self._index.pop(old)

    def merge(self, a: Instruction, b: Instruction) -> None:
        """What depends on `a` or `b` now depends on all of both (`UpdateReachabilityForMerge`)."""
        i, j = self._index[a], self._index[b]
        rows = self._rows
        both = rows[i] | rows[j]
        for k, row in enumerate(rows):
            if row >> i & 1 or row >> j & 1:
                rows[k] = row | both


def depends_on(instruction: Instruction, source: Instruction) -> bool:
    """True if `instruction` is `source` or works on its value, looked up without a snapshot."""
    pending, seen = [instruction], {instruction}
    while pending:
        current = pending.pop()
        if current is source:
            return True
        new = {o for o in (*current.operands, *current.control_predecessors) if o not in seen}
        seen |= new
        pending += new
    return False
