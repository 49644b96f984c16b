"""The same module by two XLA builds (devices, releases): which edges only one fuses, and what makes the
difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeAlias

from hlofuse.account import Costs, Observed, Totals
from hlofuse.account.flips import pays
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction
from hlofuse.reports.common.facts import Facts, edges_inside
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.common.model import Place
from hlofuse.reports.why import PairAnswer, last_priority
from hlofuse.reports.why.story import why_each

_NAMES_ONLY = frozenset({"name", "platform", "gcn_arch_name"})

_Edge: TypeAlias = tuple[str, str]

_Term: TypeAlias = tuple[str, Any, Any]

_DETAILED = 40  # edges for which the reason is looked for; there may be thousands


@dataclass(frozen=True, slots=True)
class Side:
    """One build and what it makes of the module."""

    label: str
    """The device; of two releases on one device, `XLA 0.8.3`."""
    before: Totals
    after: Totals


@dataclass(frozen=True, slots=True)
class FlippedEdge:
    """A producer and a consumer of the input that share a kernel in one of the builds only."""

    producer: Place
    consumer: Place
    fused_on: str
    unfused_on: str
    kernels: tuple[str, str] | None
    """The kernel with the producer and the one with the consumer, which reads it; None where no
    such two exist."""
    answer: PairAnswer | None
    """The decision about these two kernels; None beyond the first few."""
    terms: tuple[_Term, ...]
    """Numbers of the device, each enough to turn it: name, there, and on the other device."""
    between_releases: bool = False
    """The builds differ in more than the numbers of a device."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two replays of one module."""

    module: str
    release: str
    sides: tuple[Side, Side] = field(repr=False)
    flipped: tuple[FlippedEdge, ...]
    what_if: tuple[str, ...] = ()
    """The changes to XLA in both, in words."""
    from_program: bool = False
    """The second replay begins before optimizations; else with the module that enters fusion on the first."""
    alone: tuple[tuple[Place, ...], tuple[Place, ...]] = ((), ())
    """Operations that enter fusion on one device only: the passes before fusion differ."""


def compare_builds(first: Observed, second: Observed) -> Comparison:
    """Edges of the input that are inside a kernel in one build and between kernels in the other."""
    labels = _labels(first, second)
    facts = Facts(first.replay, first.costs), Facts(second.replay, second.costs)
    shared = _shared_edges(facts)
    inside = edges_inside(facts[0]) & shared, edges_inside(facts[1]) & shared
    flipped: list[FlippedEdge] = []
    for here, there in ((0, 1), (1, 0)):
        edges = sorted(inside[here] - inside[there])
        between = {edge: next(_kernels_between(*edge, facts[there]), None) for edge in edges}
        detailed = edges[: max(0, _DETAILED - len(flipped))]
        details = _details(detailed, between, facts[there], facts[here].costs)
        flipped += [
            FlippedEdge(
                facts[0].place(edge[0]),
                facts[0].place(edge[1]),
                labels[here],
                labels[there],
                between[edge],
                *details.get(between[edge] or edge, (None, ())),
                first.replay.config.release != second.replay.config.release,
            )
            for edge in edges
        ]
    sides = tuple(
        Side(label, f.totals_before, f.totals_after) for label, f in zip(labels, facts, strict=True)
    )
    module = first.replay.before.name
    from_program = second.replay.input.unoptimized is not None
    alone = _alone(facts[0], facts[1]), _alone(facts[1], facts[0])
    return Comparison(
        module,
        first.replay.config.release.title,
        (sides[0], sides[1]),
        tuple(flipped),
        first.changes,
        from_program,
        alone,
    )


def _labels(first: Observed, second: Observed) -> tuple[str, str]:
    a, b = first.replay.config, second.replay.config
    if a.release != b.release:
        return f"XLA {a.release.name}", f"XLA {b.release.name}"
    return first.replay.device or "", second.replay.device or ""


def _shared_edges(facts: tuple[Facts, Facts]) -> set[_Edge]:
    """Edges between operations that enter fusion on both devices, bitcasts passed over."""
    return {
        (operand.name, name)
        for name, consumer in facts[0].before.items()
        if name in facts[1].before
        for operand in map(without_bitcasts, consumer.operands)
        if operand.name in facts[1].before
    }


def _alone(facts: Facts, other: Facts) -> tuple[Place, ...]:
    """Launches of the one that the other lacks."""
    return tuple(facts.place(name) for name in facts.launched_before if name not in other.before)


def _details(
    edges: Iterable[_Edge], between: dict[_Edge, _Edge | None], facts: Facts, other: Costs | None
) -> dict[_Edge, tuple[PairAnswer | None, tuple[_Term, ...]]]:
    """The lines about each edge, or about the kernels `between` which it is.

    Where nothing was decided about these two, as it was before the producer got there, they are given up.
    """
    answers = _answers([between[edge] or edge for edge in edges], facts)
    early = [edge for edge in edges if (kernels := between[edge]) is not None and answers[kernels] is None]
    between |= dict.fromkeys(early)
    answers |= _answers(early, facts)
    names = [between[edge] or edge for edge in edges]
    terms: dict[_Edge, tuple[_Term, ...]] = {}
    if facts.costs is not None and other is not None and facts.costs.device != other.device:
        terms = _terms(names, facts, facts.costs, other.device)
    return {pair: (answers[pair], terms.get(pair, ())) for pair in names}


def _answers(pairs: Iterable[_Edge], facts: Facts) -> dict[_Edge, PairAnswer | None]:
    """The decision about each pair; None without one."""
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
    pairs: Iterable[_Edge], facts: Facts, costs: Costs, other: DeviceDescription
) -> dict[_Edge, tuple[_Term, ...]]:
    """Each number of the other device that alone would make the fusion of a pair pay (or not) here.

    Asked of the graph as it stood when the pair was last estimated, where that is known.
    """
    found: dict[_Edge, tuple[_Term, ...]] = {}

    def look(pair: _Edge, model: KernelModel, producer: Instruction, _: Sequence[Instruction]) -> None:
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


def _turning(producer: Instruction, model: KernelModel, other: DeviceDescription) -> tuple[_Term, ...]:
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
