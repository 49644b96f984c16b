"""Differences of a what-if run from XLA's own: the result, and edges decided otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlofuse.account import Observed, Totals
from hlofuse.account.account import scaled_saving
from hlofuse.reports.common.facts import EdgeNames, Facts, edges_inside
from hlofuse.reports.common.model import Place


@dataclass(frozen=True, slots=True)
class ChangedEdge:
    """A producer and a consumer of the input."""

    producer: Place
    consumer: Place


@dataclass(frozen=True, slots=True)
class Difference:
    """Two replays of one module: XLA's own, and one that is changed."""

    changes: tuple[str, ...]
    """The changes, in words."""
    xla: Totals
    """Totals of XLA's own passes."""
    replayed: Totals
    """Totals of the changed passes."""
    fused: tuple[ChangedEdge, ...]
    """Edges inside a kernel here and between kernels in XLA's."""
    parted: tuple[ChangedEdge, ...]
    """The other way round."""
    other_model: bool = False
    """The times are by different models: numbers of the device are changed."""

    @property
    def same_decisions(self) -> bool:
        """The change makes no difference to this module's kernels."""
        return not self.fused and not self.parted and self.xla.kernels == self.replayed.kernels


@dataclass(frozen=True, slots=True)
class Result:
    """One replay as far as others are compared with it."""

    facts: Facts
    inside: set[EdgeNames]

    @property
    def totals(self) -> Totals:
        """The module as the passes leave it."""
        return self.facts.totals_after


def result_of(observed: Observed) -> Result:
    """Kernels, bytes and time of a replay, and the edges inside its kernels."""
    facts = Facts(observed.replay, observed.costs)
    return Result(facts, edges_inside(facts))


def compare_results(xla: Result, replayed: Result, changes: tuple[str, ...]) -> Difference:
    """The difference between XLA's replay of a module and another one."""
    order = {name: k for k, name in enumerate(xla.facts.before)}

    def edges(names: set[EdgeNames]) -> tuple[ChangedEdge, ...]:
        ranked = sorted(names, key=lambda e: (order[e[1]], order[e[0]]))
        return tuple(ChangedEdge(xla.facts.place(a), xla.facts.place(b)) for a, b in ranked)

    costs = xla.facts.costs, replayed.facts.costs
    saving = scaled_saving(xla.facts.account_after, replayed.facts.account_after)
    return Difference(
        changes,
        xla.totals,
        replace(replayed.totals, scaled_saving_us=saving),
        edges(replayed.inside - xla.inside),
        edges(xla.inside - replayed.inside),
        costs[0] is not None and costs[1] is not None and costs[0].device != costs[1].device,
    )


def difference_of(observed: Observed) -> Difference | None:
    """The difference to XLA's own replay; None where it is XLA's own."""
    if observed.xla is None:
        return None
    return compare_results(result_of(observed.xla), result_of(observed), observed.changes)
