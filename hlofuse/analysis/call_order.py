"""The order of a module's computations, callees first, as it is kept while passes change who calls what.

What is added comes last. Who calls something new goes behind that, and so does all that it is called by
(`TopologicalSort::AddEdge` of `xla/online_topsort.h`)."""

import re
from collections.abc import Callable, Collection, Iterable
from itertools import count

from hlofuse.ir.graph import Computation, Module


class CallOrder:
    """The computations in that order."""

    def __init__(
        self, order: Iterable[Computation], callers: Callable[[Computation], Iterable[Computation]]
    ) -> None:
        """`callers` gives the computations by which one is called, maybe also some that are not there yet."""
        self._time = count()
        self._callers = callers
        self._since = {computation: next(self._time) for computation in order}

    def add(self, computation: Computation) -> None:
        """It comes last, also if it was there."""
        self._since[computation] = next(self._time)

    def call_new(self, computation: Computation) -> None:
        """It calls what was added, and goes behind that with all by which it is called."""
        for caller in self._with_callers(computation):
            self.add(caller)

    def listed(self) -> list[Computation]:
        """All of them as they stand."""
        return sorted(self._since, key=self._since.__getitem__)

    def _with_callers(self, computation: Computation) -> list[Computation]:
        """Callees first; of several callers the one that stands first."""
        found: list[Computation] = []
        agenda = [(computation, False)]
        seen: set[Computation] = set()
        while agenda:
            x, is_done = agenda.pop()
            if is_done:
                found.append(x)
            elif x not in seen:
                seen.add(x)
                agenda.append((x, True))
                callers = {c for c in self._callers(x) if c in self._since}
                agenda += [(c, False) for c in sorted(callers, key=self._since.__getitem__)]
        return found[::-1]


def caller_of(computation: Computation) -> list[Computation]:
    """The computation with the first instruction that calls it, if any does."""
    caller = computation.first_caller
    inside = caller.computation if caller is not None else None
    return [inside] if inside is not None else []


def non_fusion_computations(module: Module) -> list[Computation]:
    """Those that are not a fusion's body, in the order of the dump, the entry last
    (`HloModule::MakeNonfusionComputations`).

    XLA keeps a topological order that depends on how earlier passes made the computations and that no dump
    tells. This is the closest: decisions are the same in any order, and only the numbers in the names of
    fusions in computations that do not call each other can differ (docs/fidelity.md).
    """
    if module.computation_order is not None:
        return module.non_fusion_computations()
    others = [c for c in module.computations if c.fusion is None and c is not module.entry]
    return [*others, module.entry]


_OF_THE_PROGRAM = re.compile(r"(?!wide\.)[\w\-]+\.(\d+)")


def creation_order(module: Module) -> list[Computation]:
    """All computations in the order in which they came to be (`HloModule::computations`).

    A text prints callees first instead. Those of the program have numbers that tell, as long as no pass has
    made others of them; what passes make comes behind, in the order of `module.computations`.
    """
    own: dict[Computation, int] = {}
    for computation in module.computations:
        number = _OF_THE_PROGRAM.fullmatch(computation.name)
        if number is not None and computation.fusion is None:
            own[computation] = int(number[1])
    later = [c for c in module.computations if c not in own]
    return [*sorted(own, key=own.__getitem__), *later]


def with_changed_after(
    order: Iterable[Computation], changed: Collection[Computation], *, is_backward: bool = False
) -> list[Computation]:
    """The order that a pass leaves which goes through computations and has these call something new.

    It goes backward if the last computation is the first that it comes to.
    """
    listed = [*order]
    remaining = CallOrder(listed, caller_of)
    for computation in reversed(listed) if is_backward else listed:
        if computation in changed:
            remaining.call_new(computation)
    return remaining.listed()
