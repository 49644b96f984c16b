"""Which instructions does a value flow into? (`HloReachabilityMap`)."""

from __future__ import annotations

from hlofuse.ir.graph import Computation, Instruction


class Reachability:
    """For each instruction the set of those that reach it, one bit for each instruction.

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
