"""What FlattenCallGraph does to the order of computations, ahead of layouts.

`FlattenCallGraph::RunImpl` of `xla/hlo/transforms/simplifiers/flatten_call_graph.cc` goes through the
computations in the order that they have. What several instructions call stays with the oldest, each of the
others gets a clone, and so does everything that a clone calls. A clone comes behind all there is, and who
calls it behind that, with all by whom that is called (`TopologicalSort::AddEdge` of `xla/online_topsort.h`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlofuse.analysis.call_order import CallOrder, caller_of
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
        self.kept = CallOrder((c for c in order if isinstance(c, Computation)), self._callers)
        self.direct: dict[str, list[Computation]] = {}
        """By what is there first: its clones, in the order they are made."""
        for clone, (of, _) in sorted(clones.items(), key=lambda pair: pair[1].number):
            if not any(caller in clones for caller in caller_of(clone)):
                self.direct.setdefault(of, []).append(clone)

    def run(self, order: list[Computation | str]) -> list[Computation]:
        for x in order:
            name = x.name if isinstance(x, Computation) else x
            rest = self.direct.get(name, [])
            while rest:
                self._make(rest.pop(0))
        return self.kept.listed()

    def _make(self, clone: Computation) -> None:
        fresh = self._called(clone)
        while fresh:
            for x in fresh.pop():
                for callee in x.called_computations:
                    if callee in self.clones:
                        fresh += self._called(callee)

    def _called(self, clone: Computation) -> list[Computation]:
        """It is there, and its caller calls it."""
        self.kept.add(clone)
        for caller in caller_of(clone):
            self.kept.call_new(caller)
        return [clone]

    def _callers(self, computation: Computation) -> list[Computation]:
        """What is yet to be cloned is called by all that shall have a clone."""
        alike = (computation, *self.direct.get(computation.name, ()))
        return [caller for x in alike for caller in caller_of(x)]
