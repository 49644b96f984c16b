"""Two compilations of one module: what each launches, and the edges that only one of them fuses."""

from collections.abc import Collection, Iterable, Iterator

from hlofuse.account import Observed, Totals
from hlofuse.account.account import scaled_saving
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.format import fields
from hlofuse.ir import Json, Record, Strings, replace
from hlofuse.reports.common.costs import detail_json
from hlofuse.reports.common.facts import EdgeNames, Facts, edges_inside
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.common.model import Place, place_json, totals_json
from hlofuse.reports.why import PairAnswer
from hlofuse.reports.why.story import why_each


class ChangedEdge(Record):
    """A producer and a consumer of the input that share a kernel in one of the compilations only."""

    producer: Place
    consumer: Place
    fused_on: str
    unfused_on: str
    kernels: EdgeNames | None = None
    """The kernel with the producer and the one with the consumer, which reads it; None without both."""
    answer: PairAnswer | None = None  # Decision about these two kernels; None where not looked for or found


class Comparison(Record):
    """Two compilations of one module."""

    xla: Totals  # The totals of the first
    replayed: Totals  # The totals of the second
    fused: tuple[ChangedEdge, ...]  # Edges inside a kernel of the second and between kernels of the first
    parted: tuple[ChangedEdge, ...]  # Edges inside a kernel of the first and between kernels of the second
    changes: Strings = ()  # The differences from XLA in words: of the second for a what-if, otherwise of both
    other_model: bool = False  # The times are by different models: numbers of the device differ

    @property
    def flipped(self) -> tuple[ChangedEdge, ...]:
        """All edges that only one of them fuses."""
        return (*self.parted, *self.fused)

    @property
    def same_decisions(self) -> bool:
        """True if the change makes no difference to this module's kernels."""
        return not self.flipped and self.xla.kernels == self.replayed.kernels


class Result(Record):
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


def compare(xla: Result, replayed: Result, changes: Strings) -> Comparison:
    """XLA's compilation of a module and a what-if of the same input."""
    order = {name: k for k, name in enumerate(xla.facts.before)}

    def edges(names: Collection[EdgeNames], fused_on: str, unfused_on: str) -> tuple[ChangedEdge, ...]:
        ranked = sorted(names, key=lambda e: (order[e[1]], order[e[0]]))
        return tuple(changed_edge(e, xla.facts, fused_on, unfused_on) for e in ranked)

    costs = xla.facts.costs, replayed.facts.costs
    saving = scaled_saving(xla.facts.account_replayed, replayed.facts.account_replayed)
    return Comparison(
        xla.totals,
        replace(replayed.totals, scaled_saving_us=saving),
        edges(replayed.inside - xla.inside, "here", "XLA"),
        edges(xla.inside - replayed.inside, "XLA", "here"),
        changes,
        costs[0] is not None and costs[1] is not None and costs[0].device != costs[1].device,
    )


def compare_with_xla(observed: Observed) -> Comparison | None:
    """XLA's own replay and a changed one; None where it is XLA's own."""
    if observed.xla is None:
        return None
    return compare(result_of(observed.xla), result_of(observed), observed.changes)


def changed_edge(edge: EdgeNames, facts: Facts, fused_on: str, unfused_on: str) -> ChangedEdge:
    return ChangedEdge(facts.place(edge[0]), facts.place(edge[1]), fused_on, unfused_on)


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


_DETAILED = 40  # edges for which the reason is looked for; there may be thousands


def compare_builds(first: Observed, second: Observed) -> Comparison:
    """The edges of the input that are inside a kernel in one release and between kernels in the other."""
    labels = [f"XLA {observed.replay.config.release.name}" for observed in (first, second)]
    results = result_of(first), result_of(second)
    facts = results[0].facts, results[1].facts
    changed: list[tuple[ChangedEdge, ...]] = []
    for here, there in ((0, 1), (1, 0)):
        edges = sorted(shared(results[here].inside - results[there].inside, *facts))
        between = {edge: next(_kernels_between(*edge, facts[there]), None) for edge in edges}
        detailed = edges[: max(0, _DETAILED - sum(map(len, changed)))]
        answers = _details(detailed, between, facts[there])
        found = []
        for edge in edges:
            answer = answers.get(between[edge] or edge)
            plain = changed_edge(edge, facts[0], labels[here], labels[there])
            found.append(replace(plain, kernels=between[edge], answer=answer))
        changed.append(tuple(found))
    parted, fused = changed
    return Comparison(facts[0].totals_after, facts[1].totals_after, fused, parted, first.changes)


def _details(
    edges: Iterable[EdgeNames], between: dict[EdgeNames, EdgeNames | None], facts: Facts
) -> dict[EdgeNames, PairAnswer | None]:
    """The decision about each edge, or about the two kernels that hold its ends (`between`). Kernels without
    a decision about them are removed from `between`: the decision was about the edge."""
    answers = _answers([between[edge] or edge for edge in edges], facts)
    early = [edge for edge in edges if (kernels := between[edge]) is not None and answers[kernels] is None]
    between |= dict.fromkeys(early)
    return answers | _answers(early, facts)


def _answers(pairs: Iterable[EdgeNames], facts: Facts) -> dict[EdgeNames, PairAnswer | None]:
    pairs = list(dict.fromkeys(pairs))
    found = zip(pairs, why_each(pairs, facts), strict=True)
    return {
        two: detail if detail.settled_by is not None or detail.cost is not None else None
        for two, detail in found
    }


def _kernels_between(producer: str, consumer: str, facts: Facts) -> Iterator[tuple[str, str]]:
    for first in facts.lineage.kernels_of(producer):
        for second in facts.lineage.kernels_of(consumer):
            reader = facts.after.get(second)
            read = [through_views(o).name for o in reader.operands] if reader is not None else []
            if first != second and first in read:
                yield first, second


def difference_json(c: Comparison) -> Json:
    """A what-if compared with XLA, as a part of every report of the what-if."""
    return {
        **fields(c, "changes other_model"),
        "xla": totals_json(c.xla),
        "ours": totals_json(c.replayed),
        **fields(c, "fused parted", edge_json),
    }


def edge_json(e: ChangedEdge) -> Json:
    return fields(e, "producer consumer", place_json)


def flipped_json(e: ChangedEdge) -> Json:
    """An edge that only one build fuses, with the reason."""
    settled = e.answer.settled_by if e.answer is not None else None
    return {
        **edge_json(e),
        **fields(e, "fused_on apart_on=unfused_on kernels"),
        "rule": settled.rule.code if settled is not None else None,
        "cost": detail_json(e.answer.cost) if e.answer is not None else None,
    }
