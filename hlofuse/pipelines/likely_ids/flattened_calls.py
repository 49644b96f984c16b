"""What FlattenCallGraph does to the order of computations, ahead of layouts.

`FlattenCallGraph::RunImpl` of `xla/hlo/transforms/simplifiers/flatten_call_graph.cc` goes through the
computations in the order that they have. What several instructions call stays with the oldest, each of the
others gets a clone, and so does everything that a clone calls. A clone comes behind all there is, and who
calls it behind that, with all by whom that is called (`TopologicalSort::AddEdge` of `xla/online_topsort.h`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

from hlofuse.ir.computation import Computation


class Clone(NamedTuple):
    """The name of what it is a clone of, and which of the clones."""

    of: str
    number: int


def with_clones(order: list[Computation | str], clones: Mapping[Computation, Clone]) -> list[Computation]:
    """All of these in the order that they have then: `order` has those that were there, callees first.

    Of what has gone since, but for its clones, `order` has the name.
    """
    return _Flattening(order, clones).run(order)


class _Flattening:
    """Clones that were made for an instruction are told from those made for what a clone calls."""

    def __init__(self, order: list[Computation | str], clones: Mapping[Computation, Clone]) -> None:
        self.clones = clones
        self.time = count()
        self.since: dict[Computation, int] = {c: next(self.time) for c in order if isinstance(c, Computation)}
        self.direct: dict[str, list[Computation]] = {}
        """By what is there first: its clones, in the order they are made."""
        for clone, (of, _) in sorted(clones.items(), key=lambda pair: pair[1].number):
            if _caller(clone) not in clones:
                self.direct.setdefault(of, []).append(clone)

    def run(self, order: list[Computation | str]) -> list[Computation]:
        for x in order:
            name = x.name if isinstance(x, Computation) else x
            rest = self.direct.get(name, [])
            while rest:
                self._make(rest.pop(0))
        return sorted(self.since, key=self.since.__getitem__)

    def _make(self, clone: Computation) -> None:
        fresh = self._called(clone)
        while fresh:
            for x in fresh.pop():
                for callee in x.called_computations:
                    if callee in self.clones:
                        fresh += self._called(callee)

    def _called(self, clone: Computation) -> list[Computation]:
        """It is there, and its caller calls it."""
        self.since[clone] = next(self.time)
        caller = _caller(clone)
        if caller is not None:
            for x in self._with_callers(caller):
                self.since[x] = next(self.time)
        return [clone]

    def _with_callers(self, computation: Computation) -> list[Computation]:
        """Callees first; what is yet to be cloned is called by all that shall have a clone."""
        found: dict[Computation, None] = {}
        agenda = [(computation, False)]
        seen: set[Computation] = set()
        while agenda:
            x, is_done = agenda.pop()
            if is_done:
                found[x] = None
            elif x not in seen:
                seen.add(x)
                agenda.append((x, True))
                callers = {c for y in (x, *self.direct.get(x.name, ())) if (c := _caller(y)) is not None}
                agenda += [
                    (c, False) for c in sorted(callers & self.since.keys(), key=self.since.__getitem__)
                ]
        return list(reversed(found))


def _caller(computation: Computation) -> Computation | None:
    caller = computation.first_caller
    return caller.computation if caller is not None else None
