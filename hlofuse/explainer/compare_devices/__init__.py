"""The same module on two devices: which edges are fused on one only, and what makes the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.explainer.costs import Costs, Observed
from hlofuse.explainer.costs.flips import pays
from hlofuse.explainer.edges import edges_inside
from hlofuse.explainer.facts import Facts
from hlofuse.explainer.model import Place, Totals
from hlofuse.explainer.views import through_views
from hlofuse.explainer.why import Pair, last_priority, why
from hlofuse.ir.instruction import Instruction

_NAMES_ONLY = frozenset({"name", "platform", "gcn_arch_name"})
_DETAILED = 40  # edges for which the reason is looked for; there may be thousands


@dataclass(frozen=True, slots=True)
class DeviceSide:
    """One device and what becomes of the module there."""

    device: str
    before: Totals
    after: Totals


@dataclass(frozen=True, slots=True)
class FlippedEdge:
    """A producer and a consumer of the input that share a kernel on one of the devices only."""

    producer: Place
    consumer: Place
    fused_on: str
    apart_on: str
    kernels: tuple[str, str] | None
    """Where they stay apart: the kernel with the producer and that with the consumer, which reads it; None
    where no kernel with the one is read by one with the other."""
    answer: Pair | None
    """What was decided about these two kernels; None beyond the first few."""
    terms: tuple[tuple[str, Any, Any], ...]
    """Numbers of the device, each enough to turn it: name, there, and on the other device."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two replays of one module."""

    module: str
    release: str
    sides: tuple[DeviceSide, DeviceSide]
    flipped: tuple[FlippedEdge, ...]
    what_if: tuple[str, ...] = ()
    """What differs from XLA in both, in words."""


def compare_devices(first: Observed, second: Observed, release: str) -> Comparison:
    """Edges of the input that are inside a kernel on one device and between kernels on the other."""
    facts = Facts(first.replay, first.costs), Facts(second.replay, second.costs)
    inside = edges_inside(facts[0]), edges_inside(facts[1])
    flipped: list[FlippedEdge] = []
    for here, there in ((0, 1), (1, 0)):
        costs = (first.costs, second.costs)[there]
        other = (first.costs, second.costs)[here]
        known: dict[tuple[str, str], tuple[Pair | None, tuple[tuple[str, Any, Any], ...]]] = {}
        for producer, consumer in sorted(inside[here] - inside[there]):
            kernels = next(_between(producer, consumer, facts[there]), None)
            asked = kernels or (producer, consumer)
            if asked not in known and len(flipped) < _DETAILED and costs is not None and other is not None:
                answer = _answer(asked, (first, second)[there])
                if answer is None and kernels is not None:
                    # Not decided about these two, so before the producer got there.
                    kernels, asked = None, (producer, consumer)
                    answer = _answer(asked, (first, second)[there])
                known[asked] = answer, _terms(asked, facts[there], costs, other.device)
            flipped.append(
                FlippedEdge(
                    facts[0].place(producer),
                    facts[0].place(consumer),
                    facts[here].replay.device or "",
                    facts[there].replay.device or "",
                    kernels,
                    *known.get(asked, (None, ())),
                )
            )
    sides = tuple(DeviceSide(f.replay.device or "", f.totals_before, f.totals_after) for f in facts)
    module = first.replay.before.name
    return Comparison(module, release, (sides[0], sides[1]), tuple(flipped), first.changes)


def _answer(pair: tuple[str, str], observed: Observed) -> Pair | None:
    """What was decided about the two; None if nothing was."""
    found = why(observed.replay, *pair, costs=observed.costs)
    if isinstance(found, Pair) and (found.settled_by is not None or found.cost is not None):
        return found
    return None


def _between(producer: str, consumer: str, facts: Facts) -> Iterator[tuple[str, str]]:
    """Kernels that hold the two, of which the second reads the first."""
    for first in facts.lineage.kernels_of(producer):
        for second in facts.lineage.kernels_of(consumer):
            reader = facts.after.get(second)
            read = [through_views(o).name for o in reader.operands] if reader is not None else []
            if first != second and first in read:
                yield first, second


def _terms(
    kernels: tuple[str, str], facts: Facts, costs: Costs, other: DeviceDescription
) -> tuple[tuple[str, Any, Any], ...]:
    """Each number of the other device that alone would make the fusion pay (or not) here.

    Asked of the graph as it stood when the pair was last estimated, where that is known.
    """
    found: list[tuple[tuple[str, Any, Any], ...]] = []

    def look(model: KernelModel, producer: Instruction, _: Sequence[Instruction]) -> None:
        found.append(_turning(producer, model, other))

    then = last_priority(*kernels, facts)
    if then is not None:
        costs.look(then[0], look)
        return found[0] if found else ()
    producer = facts.after.get(facts.lineage.final(kernels[0]))
    return _turning(producer, costs.model, other) if producer is not None and producer.users else ()


def _turning(
    producer: Instruction, model: KernelModel, other: DeviceDescription
) -> tuple[tuple[str, Any, Any], ...]:
    device = model.device
    try:
        now = pays(model, producer, device)
        found = []
        for field in fields(DeviceDescription):
            mine, theirs = getattr(device, field.name), getattr(other, field.name)
            if field.name in _NAMES_ONLY or mine == theirs:
                continue
            changes: dict[str, Any] = {field.name: theirs}
            if pays(model, producer, replace(device, **changes)) is not now:
                found.append((field.name, mine, theirs))
    except (KeyError, ValueError, IndexError):  # a kernel the model has no figures for
        return ()
    return tuple(found)
