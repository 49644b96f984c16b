"""Cycles of a graph, and reachability while instructions are merged (`HloDfsReachability`).

A search from the later instruction backwards need not go beyond the place of the earlier one in any order
with operands first. Each merge updates such an order by moving only the part between the two that depends on
one of them (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006).
Recomputing it each time would cost the square of the module."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from hlofuse.ir.graph import Computation, Instruction, Instructions
from hlofuse.ir.grouping import numbered, reach

T = TypeVar("T", bound=Hashable)


def components(edges: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """The strongly connected components of more than one node, as Tarjan finds them. R. Tarjan, "Depth-first
    search and linear graph algorithms", 1972; iterative. Every node is a key of `edges`."""
    found = list[list[T]]()
    index = dict[T, int]()
    low = dict[T, int]()
    stack = list[T]()
    place = dict[T, int]()
    closed = set[T]()
    for start in edges:
        pending = [(start, iter(edges[start]))] if start not in index else []
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
    """The set of those that reach each instruction, a bit for each (`HloReachabilityMap`), as of now."""

    def __init__(self, computation: Computation) -> None:
        order = computation.post_order()
        self._index: dict[Instruction, int] = numbered(order)
        self._rows = list[int]()
        index = self._index
        rows = self._rows
        for k, x in enumerate(order):
            row = 1 << k
            for source in x.predecessors:
                row |= rows[index[source]]
            rows.append(row)

    def reaches(self, a: Instruction, b: Instruction) -> bool:
        """True if `b` depends on `a` or is `a` (`IsReachable`)."""
        return bool(self._rows[self._index[b]] >> self._index[a] & 1)

    def connected(self, a: Instruction, b: Instruction) -> bool:
        """True if either depends on the other (`IsConnected`)."""
        return self.reaches(a, b) or self.reaches(b, a)

    def merge(self, a: Instruction, b: Instruction) -> None:
        """Let everything that depends on `a` or `b` depend on both (`UpdateReachabilityForMerge`)."""
        i = self._index[a]
        j = self._index[b]
        rows = self._rows
        both = rows[i] | rows[j]
        for k, row in enumerate(rows):
            if row >> i & 1 or row >> j & 1:
                rows[k] = row | both


def depends_on(instruction: Instruction, source: Instruction) -> bool:
    """True if `instruction` is `source` or works on its value, looked up without a snapshot."""
    return source in reach([instruction], lambda x: x.predecessors)


class MergedOrder:
    """Places of a computation's instructions; new get-tuple-elements count as what they are taken from."""

    def __init__(self, computation: Computation) -> None:
        self._place = numbered(computation.post_order())
        self._start: Instruction | None = None
        """The instruction whose connections are looked up in turn; None after a change."""
        self._visited = 0
        self._connected: set[Instruction] | None = None

    def connected(self, a: Instruction, b: Instruction) -> bool:
        """True if either depends on the other. Many `b` in turn take at most about two walks through all."""
        if a is not self._start:
            self._start, self._visited, self._connected = a, 0, None
        if self._connected is None and 2 * self._visited > len(self._place):
            start, everywhere = self._placed(a), lambda k: True
            self._connected = self._search(start, self._users, everywhere)
            self._connected |= self._search(start, self._sources, everywhere)
            self._connected.add(start)
        if self._connected is not None:
            return self._placed(b) in self._connected
        return self.reaches(a, b) or self.reaches(b, a)

    def reaches(self, a: Instruction, b: Instruction) -> bool:
        """True if `b` depends on `a`, or is `a`."""
        a, b = self._placed(a), self._placed(b)
        if a is b:
            return True
        place = self._place
        first = place[a]
        last = place[b]
        if first > last:
            return False
        # From both ends in turn: often one of them has next to nothing in between.
        later = [a]
        sooner = [b]
        seen_later = {a}
        seen_sooner = {b}
        while later and sooner:
            self._visited += 1
            for x in self._users(later.pop()):
                if x in seen_sooner:
                    return True
                if x not in seen_later and place[x] < last:
                    seen_later.add(x)
                    later.append(x)
            for x in self._sources(sooner.pop()):
                if x in seen_later:
                    return True
                if x not in seen_sooner and place[x] > first:
                    seen_sooner.add(x)
                    sooner.append(x)
        return False

    def replace(self, old: Instruction, new: Instruction) -> None:
        self._start = None
        self._place[new] = self._place.pop(old)

    def merge(self, survivor: Instruction, removed: Instruction) -> None:
        """`removed` is about to become part of `survivor`; no path leads between them by way of a third."""
        self._start = None
        place = self._place
        first, last = sorted((survivor, removed), key=place.__getitem__)
        start = place[first]
        end = place[last]
        later = self._search(first, self._users, lambda k: k < end)
        sooner = self._search(last, self._sources, lambda k: k > start)
        free = sorted([place[x] for x in (first, last, *sooner, *later)])
        order = [*sorted(sooner, key=place.__getitem__), survivor, *sorted(later, key=place.__getitem__)]
        place.update(zip(order, free, strict=False))
        del place[removed]

    def precede(self, a: Instruction, b: Instruction) -> bool:
        """Place `a` before `b`, for an edge that is about to be added; False where `a` depends on `b`."""
        self._start = None
        place = self._place
        start = place[b]
        end = place[a]
        if end < start:
            return True
        later = self._search(b, self._users, lambda k: k <= end)
        if a is b or a in later:
            return False
        sooner = self._search(a, self._sources, lambda k: k > start)
        order = sorted({a, *sooner}, key=place.__getitem__)
        order += sorted({b, *later}, key=place.__getitem__)
        place.update(zip(order, sorted([place[x] for x in order]), strict=True))
        return True

    def _placed(self, x: Instruction) -> Instruction:
        while x not in self._place:
            x = x.operand
        return x

    def _sources(self, x: Instruction) -> Instructions:
        place = self._place
        sources = [o if o in place else self._placed(o) for o in x.operands]
        return sources + list(x.control_predecessors) if x.control_predecessors else sources

    def _users(self, x: Instruction) -> Instructions:
        place = self._place
        users = [*x.users, *x.control_successors] if x.control_successors else x.users
        for user in users:
            if user not in place:
                break
        else:
            return users
        placed = Instructions()
        for user in users:
            placed += [user] if user in place else self._users(user)
        return placed

    def _search(
        self,
        start: Instruction,
        neighbours: Callable[[Instruction], Instructions],
        within: Callable[[int], bool],
    ) -> set[Instruction]:
        """The instructions reachable from `start`, without it, in places that are `within`."""
        place = self._place
        return {*reach([start], lambda x: [n for n in neighbours(x) if within(place[n])])} - {start}
