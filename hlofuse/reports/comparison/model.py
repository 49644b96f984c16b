"""Two compilations of one module: what each launches, and the edges that only one of them fuses."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from hlofuse.account import Costs, Observed, Totals
from hlofuse.account.account import scaled_saving
from hlofuse.account.flips import pays
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction
from hlofuse.reports.common.facts import EdgeNames, Facts, edges_inside
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.common.model import Place
from hlofuse.reports.why import PairAnswer, last_priority
from hlofuse.reports.why.story import why_each

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


_NAMES_ONLY = frozenset({"name", "platform", "gcn_arch_name"})

_DETAILED = 40  # edges for which the reason is looked for; there may be thousands


def compare_builds(first: Observed, second: Observed) -> Comparison:
    """The edges of the input that are inside a kernel in one build and between kernels in the other."""
    labels = _labels(first, second)
    results = result_of(first), result_of(second)
    facts = results[0].facts, results[1].facts
    changed: list[tuple[ChangedEdge, ...]] = []
    for here, there in ((0, 1), (1, 0)):
        edges = sorted(shared(results[here].inside - results[there].inside, *facts))
        between = {edge: next(_kernels_between(*edge, facts[there]), None) for edge in edges}
        detailed = edges[: max(0, _DETAILED - sum(map(len, changed)))]
        details = _details(detailed, between, facts[there], facts[here].costs)
        found = []
        for edge in edges:
            answer, terms = details.get(between[edge] or edge, (None, ()))
            plain = changed_edge(edge, facts[0], labels[here], labels[there])
            found.append(replace(plain, kernels=between[edge], answer=answer, terms=terms))
        changed.append(tuple(found))
    parted, fused = changed
    sides = [Side(label, f.totals_before, f.totals_after) for label, f in zip(labels, facts, strict=True)]
    releases = first.replay.config.release, second.replay.config.release
    return Comparison(
        first.replay.before.name,
        releases[0].title,
        (sides[0], sides[1]),
        fused,
        parted,
        first.changes,
        on_other_devices(*facts),
        releases[0] != releases[1],
        second.replay.input.unoptimized is not None,
        (_alone(facts[0], facts[1]), _alone(facts[1], facts[0])),
    )


def _labels(first: Observed, second: Observed) -> tuple[str, str]:
    a, b = first.replay.config, second.replay.config
    if a.release != b.release:
        return f"XLA {a.release.name}", f"XLA {b.release.name}"
    return first.replay.device or "", second.replay.device or ""


def _alone(facts: Facts, other: Facts) -> tuple[Place, ...]:
    """Kernels of the fusion input of `facts` that the other input lacks."""
    return tuple(facts.place(name) for name in facts.launched_before if name not in other.before)


def _details(
    edges: Iterable[EdgeNames], between: dict[EdgeNames, EdgeNames | None], facts: Facts, other: Costs | None
) -> dict[EdgeNames, tuple[PairAnswer | None, tuple[Term, ...]]]:
    """The decision about each edge, or about the two kernels that hold its ends (`between`).

    Kernels without a decision about them are removed from `between`: the decision was about the edge.
    """
    answers = _answers([between[edge] or edge for edge in edges], facts)
    early = [edge for edge in edges if (kernels := between[edge]) is not None and answers[kernels] is None]
    between |= dict.fromkeys(early)
    answers |= _answers(early, facts)
    names = [between[edge] or edge for edge in edges]
    terms: dict[EdgeNames, tuple[Term, ...]] = {}
    if facts.costs is not None and other is not None and facts.costs.device != other.device:
        terms = _terms(names, facts, facts.costs, other.device)
    return {pair: (answers[pair], terms.get(pair, ())) for pair in names}


def _answers(pairs: Iterable[EdgeNames], facts: Facts) -> dict[EdgeNames, PairAnswer | None]:
    pairs = list(dict.fromkeys(pairs))
    found = zip(pairs, why_each(pairs, facts), strict=True)
    return {
        two: detail if detail.settled_by is not None or detail.cost is not None else None
        for two, detail in found
    }


def _kernels_between(producer: str, consumer: str, facts: Facts) -> Iterator[tuple[str, str]]:
    """Kernels that hold the two, of which the second reads the first."""
    for first in facts.lineage.kernels_of(producer):
        for second in facts.lineage.kernels_of(consumer):
            reader = facts.after.get(second)
            read = [through_views(o).name for o in reader.operands] if reader is not None else []
            if first != second and first in read:
                yield first, second


def _terms(
    pairs: Iterable[EdgeNames], facts: Facts, costs: Costs, other: DeviceDescription
) -> dict[EdgeNames, tuple[Term, ...]]:
    """Each number of the other device that alone would make the fusion of a pair pay (or not) here.

    The graph is that of the last estimate of the pair, where that is known.
    """
    found: dict[EdgeNames, tuple[Term, ...]] = {}

    def look(pair: EdgeNames, model: KernelModel, producer: Instruction, _: Sequence[Instruction]) -> None:
        found[pair] = _turning(producer, model, other)

    names = []
    for pair in dict.fromkeys(pairs):
        then = last_priority(*pair, facts)
        producer = facts.after.get(facts.lineage.final(pair[0]))
        if then is not None:
            names.append((then[0], partial(look, pair)))
        elif producer is not None and producer.users:
            found[pair] = _turning(producer, costs.model, other)
    costs.look_at(names)
    return found


def _turning(producer: Instruction, model: KernelModel, other: DeviceDescription) -> tuple[Term, ...]:
    device = model.device
    try:
        now = pays(model, producer, device)
        found = []
        for field in fields(DeviceDescription):
            own, other_value = getattr(device, field.name), getattr(other, field.name)
            if field.name in _NAMES_ONLY or own == other_value:
                continue
            changes: dict[str, Any] = {field.name: other_value}
            if pays(model, producer, replace(device, **changes)) is not now:
                found.append((field.name, own, other_value))
    except (KeyError, ValueError, IndexError):  # a kernel the model has no figures for
        return ()
    return tuple(found)
