"""The same module on two devices: which edges are fused on one only, and what makes the difference."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.explainer.costs import Observed
from hlofuse.explainer.costs.sums import sums
from hlofuse.explainer.edges import edges_inside
from hlofuse.explainer.explain import Facts
from hlofuse.explainer.model import Place, Totals
from hlofuse.explainer.why import Pair, why

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
    answer: Pair | None
    """What was decided where they stay apart; None beyond the first few."""
    terms: tuple[tuple[str, Any, Any], ...]
    """Numbers of the device, each enough to turn it: name, there, and on the other device."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two replays of one module."""

    module: str
    release: str
    sides: tuple[DeviceSide, DeviceSide]
    flipped: tuple[FlippedEdge, ...]


def compare_devices(first: Observed, second: Observed, release: str) -> Comparison:
    """Edges of the input that are inside a kernel on one device and between kernels on the other."""
    facts = Facts(first.replay, first.costs), Facts(second.replay, second.costs)
    inside = edges_inside(facts[0]), edges_inside(facts[1])
    flipped: list[FlippedEdge] = []
    for here, there in ((0, 1), (1, 0)):
        costs = (first.costs, second.costs)[there]
        other = (first.costs, second.costs)[here]
        for producer, consumer in sorted(inside[here] - inside[there]):
            answer: Pair | None = None
            terms: tuple[tuple[str, Any, Any], ...] = ()
            if len(flipped) < _DETAILED and costs is not None and other is not None:
                found = why((first, second)[there].replay, producer, consumer, costs=costs)
                answer = found if isinstance(found, Pair) else None
                terms = _terms(producer, facts[there], costs.device, other.device)
            flipped.append(
                FlippedEdge(
                    facts[0].place(producer),
                    facts[0].place(consumer),
                    facts[here].replay.device or "",
                    facts[there].replay.device or "",
                    answer,
                    terms,
                )
            )
    sides = tuple(DeviceSide(f.replay.device or "", f.totals_before, f.totals_after) for f in facts)
    return Comparison(first.replay.before.name, release, (sides[0], sides[1]), tuple(flipped))


def _terms(
    producer: str, facts: Facts, device: DeviceDescription, other: DeviceDescription
) -> tuple[tuple[str, Any, Any], ...]:
    """Each number of the other device that alone would make the fusion pay (or not) here."""
    instruction = facts.after.get(facts.lineage.final(producer))
    if instruction is None or not instruction.users:
        return ()

    def pays(varied: DeviceDescription) -> bool | None:
        unfused, fused = sums(CombinedModel(varied), instruction)
        return None if max(unfused, fused) >= INFINITE else unfused >= fused

    try:
        now = pays(device)
        found = []
        for field in fields(DeviceDescription):
            mine, theirs = getattr(device, field.name), getattr(other, field.name)
            if field.name in _NAMES_ONLY or mine == theirs:
                continue
            changes: dict[str, Any] = {field.name: theirs}
            if pays(replace(device, **changes)) is not now:
                found.append((field.name, mine, theirs))
    except (KeyError, ValueError, IndexError):  # a kernel the model has no figures for
        return ()
    return tuple(found)
