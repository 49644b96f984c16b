"""Two compilations of one module: what each launches, and the edges that only one of them fuses."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hlofuse.account import Observed, Totals
from hlofuse.account.account import scaled_saving
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.reports.common.facts import EdgeNames, Facts, edges_inside
from hlofuse.reports.common.model import Place
from hlofuse.reports.why import PairAnswer

Term = tuple[str, Any, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One compilation in figures."""

    label: str
    """The device; of two releases on one device, `XLA 0.8.3`; `XLA` and `here` for a what-if."""
    before: Totals | None
    """Totals of the fusion input; None for a what-if."""
    after: Totals
    """Totals of the module after the passes."""


@dataclass(frozen=True, slots=True)
class ChangedEdge:
    """A producer and a consumer of the input that share a kernel in one of the compilations only."""

    producer: Place
    consumer: Place
    fused_on: str
    unfused_on: str
    kernels: EdgeNames | None = None
    """The kernel with the producer and the one with the consumer, which reads it; None where no
    such two exist."""
    answer: PairAnswer | None = None
    """The decision about these two kernels; None where it was not looked for or found."""
    terms: tuple[Term, ...] = ()
    """Numbers of the device, each enough to change it: name, there, and on the other device."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two compilations of one module."""

    module: str
    release: str
    """The release of the first."""
    sides: tuple[Side, Side] = field(repr=False)
    fused: tuple[ChangedEdge, ...]
    """Edges inside a kernel of the second and between kernels of the first."""
    parted: tuple[ChangedEdge, ...]
    """Edges inside a kernel of the first and between kernels of the second."""
    changes: tuple[str, ...] = ()
    """The differences from XLA in words: of the second for a what-if, otherwise of both."""
    other_model: bool = False
    """The times are by different models: numbers of the device differ."""
    between_releases: bool = False
    from_program: bool = False
    """The second begins before optimizations; otherwise with the module that enters fusion in the first."""
    alone: tuple[tuple[Place, ...], tuple[Place, ...]] = ((), ())
    """Operations that enter fusion in one only: the passes before fusion differ."""

    @property
    def xla(self) -> Totals:
        """The totals of the first."""
        return self.sides[0].after

    @property
    def replayed(self) -> Totals:
        """The totals of the second."""
        return self.sides[1].after

    @property
    def flipped(self) -> tuple[ChangedEdge, ...]:
        """All edges that only one of them fuses."""
        return (*self.parted, *self.fused)

    @property
    def same_decisions(self) -> bool:
        """True if the change makes no difference to this module's kernels."""
        return not self.flipped and self.xla.kernels == self.replayed.kernels


@dataclass(frozen=True, slots=True)
class Result:
    """One compilation as far as others are compared with it."""

    facts: Facts
    inside: set[EdgeNames]

    @property
    def totals(self) -> Totals:
        """The module as the passes leave it."""
        return self.facts.account_replayed.totals


def result_of(observed: Observed) -> Result:
    """Kernels, bytes and time of a replay, and the edges inside its kernels."""
    facts = Facts(observed.replay, observed.costs, with_final_names=False)
    return Result(facts, edges_inside(facts))


def compare(xla: Result, replayed: Result, changes: tuple[str, ...]) -> Comparison:
    """XLA's compilation of a module and a what-if of the same input."""
    order = {name: k for k, name in enumerate(xla.facts.before)}

    def edges(names: Collection[EdgeNames], fused_on: str, unfused_on: str) -> tuple[ChangedEdge, ...]:
        ranked = sorted(names, key=lambda e: (order[e[1]], order[e[0]]))
        return tuple(changed_edge(e, xla.facts, fused_on, unfused_on) for e in ranked)

    saving = scaled_saving(xla.facts.account_replayed, replayed.facts.account_replayed)
    config = xla.facts.replay.config
    return Comparison(
        xla.facts.replay.before.name,
        config.release.title,
        (
            Side("XLA", None, xla.totals),
            Side("here", None, replace(replayed.totals, scaled_saving_us=saving)),
        ),
        edges(replayed.inside - xla.inside, "here", "XLA"),
        edges(xla.inside - replayed.inside, "XLA", "here"),
        changes,
        on_other_devices(xla.facts, replayed.facts),
    )


def compare_with_xla(observed: Observed) -> Comparison | None:
    """XLA's own replay and a changed one; None where it is XLA's own."""
    if observed.xla is None:
        return None
    return compare(result_of(observed.xla), result_of(observed), observed.changes)


def changed_edge(edge: EdgeNames, facts: Facts, fused_on: str, unfused_on: str) -> ChangedEdge:
    """An edge by the names of its ends, without reasons."""
    return ChangedEdge(facts.place(edge[0]), facts.place(edge[1]), fused_on, unfused_on)


def on_other_devices(first: Facts, second: Facts) -> bool:
    """True if numbers of the device differ, so that times come from different models."""
    costs = first.costs, second.costs
    return costs[0] is not None and costs[1] is not None and costs[0].device != costs[1].device


def shared(edges: Iterable[EdgeNames], first: Facts, second: Facts) -> set[EdgeNames]:
    """The edges of `first`, bitcasts passed over, whose ends enter fusion in `second` as well."""
    found = set()
    for producer, consumer in edges:
        reader = first.before.get(consumer)
        if reader is None or consumer not in second.before or producer not in second.before:
            continue
        if any(o.name == producer for o in map(without_bitcasts, reader.operands)):
            found.add((producer, consumer))
    return found
