"""One module by two XLA builds: the edges that only one of them fuses, and the reasons."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from hlofuse.account import Costs, Observed
from hlofuse.account.flips import pays
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction
from hlofuse.reports.common.facts import EdgeNames, Facts
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.common.model import Place
from hlofuse.reports.comparison.model import (
    ChangedEdge,
    Comparison,
    Side,
    Term,
    changed_edge,
    on_other_devices,
    result_of,
    shared,
)
from hlofuse.reports.why import PairAnswer, last_priority
from hlofuse.reports.why.story import why_each

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
