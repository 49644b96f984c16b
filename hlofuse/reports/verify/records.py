"""Our decisions against XLA's own record of PriorityFusion: order, priorities, refusals."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import isclose

from hlofuse.ir.grouping import grouped
from hlofuse.passes.fusion.priority_fusion.recorded_order import RecordedOrder
from hlofuse.reports.verify.model import RecordVerdict, StepDifference
from hlofuse.trace import Event
from hlofuse.trace.priority_record import FusionStep, IneligibleStep, PriorityRecord, PriorityStep

PASS = "priority-fusion"
_RELATIVE_TOLERANCE = 1e-3


def compare_record(record: PriorityRecord, events: Iterable[Event]) -> RecordVerdict:
    """A replay that went its own way: counts, and the first fusion that is not XLA's."""
    decisions = [e for e in events if e.pass_name == PASS]
    fuses = [e for e in decisions if e.event == "fuse"]
    expected = record.fusions()
    ordered = [(s.producer, s.consumer) for s in expected]
    actual = [(e.producer or "", e.consumer or "") for e in fuses]
    priorities = [s for s in record.steps if isinstance(s, PriorityStep)]
    priority_events = (e for e in decisions if e.event == "priority")
    by_producer = grouped(((e.producer or "", tuple(sorted(e.consumers))), e) for e in priority_events)
    agreed = sum(
        any(_near(s, e) for e in by_producer.get((s.producer, tuple(sorted(s.consumers))), ()))
        for s in priorities
    )
    xla_refusals = Counter((s.producer, s.reason) for s in record.steps if isinstance(s, IneligibleStep))
    our_refusals = Counter((e.producer or "", e.reason or "") for e in decisions if e.event == "ineligible")
    return RecordVerdict(
        in_order=ordered == actual,
        any_order=Counter(ordered) == Counter(actual),
        priorities=agreed,
        priorities_total=len(priorities),
        refusals=sum((xla_refusals & our_refusals).values()),
        refusals_total=sum(xla_refusals.values()),
        difference=_first_fusion(record, fuses, decisions),
    )


def follow_record(recorded_order: RecordedOrder, record: PriorityRecord) -> RecordVerdict:
    """A replay that took XLA's choice among equals: the first entry that differs is a real difference."""
    recorded_order.finish()
    wrong = Counter(d.kind for d in recorded_order.disagreements)
    priorities = sum(isinstance(s, PriorityStep) for s in record.steps)
    refusals = sum(isinstance(s, IneligibleStep) for s in record.steps)
    order = wrong["choice"] + wrong["fusion"]
    first = recorded_order.disagreements[0] if recorded_order.disagreements else None
    difference = None
    if first is not None:
        difference = StepDifference(first.kind, first.step, first.producer, first.xla, first.ours)
    return RecordVerdict(
        in_order=order == 0,
        any_order=order == 0,
        priorities=max(0, priorities - wrong["priority"]),
        priorities_total=priorities,
        refusals=max(0, refusals - wrong["refusal"]),
        refusals_total=refusals,
        difference=difference,
        followed=True,
    )


def _first_fusion(
    record: PriorityRecord, fuses: list[Event], decisions: list[Event]
) -> StepDifference | None:
    for number, (xla, our) in enumerate(zip_longest(record.fusions(), fuses)):
        if xla and our and (xla.producer, xla.consumer) == (our.producer, our.consumer):
            continue
        left = right = None
        if xla is not None:
            before = [s for s in record.steps[: record.steps.index(xla)] if isinstance(s, PriorityStep)]
            left = _into(xla, before)
        if our is not None:
            right = _into(our, [e for e in decisions if e.step < our.step and e.event == "priority"])
        return StepDifference("fusion", number, (xla or our).producer or "", left, right)
    return None


def _into(fusion: FusionStep | Event, estimates: Sequence[PriorityStep | Event]) -> str:
    """The two that were fused, with the figures of the last estimate of the producer before."""
    text = f"{fusion.producer} into {fusion.consumer}"
    last = next((e for e in reversed(estimates) if e.producer == fusion.producer), None)
    return text if last is None else f"{text} ({last.us_fused:g} µs fused, {last.us_unfused:g} unfused)"


def _near(s: PriorityStep, e: Event) -> bool:
    return _close(s.us_fused, e.us_fused) and _close(s.us_unfused, e.us_unfused)


def _close(a: float, b: float | None) -> bool:
    return b is not None and isclose(a, b, rel_tol=_RELATIVE_TOLERANCE)
