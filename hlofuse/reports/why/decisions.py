"""Decisions as `why` tells them: what was decided once and again is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlofuse.reports.explain.facts import Facts
from hlofuse.reports.explain.model import RuleText
from hlofuse.trace import Event, Figures


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision; the same one taken again later is drawn together with it."""

    pass_name: str
    event: str
    """`fuse`, `ineligible` or `rewrite`."""
    steps: tuple[int, ...]
    producer: str | None
    """A name at that moment."""
    consumer: str | None
    fusion: str | None
    created: bool
    duplicated: bool
    rule: RuleText
    reason: str | None
    """XLA's words."""
    figures: Figures
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def collapse(events: Iterable[Event], facts: Facts) -> tuple[Decision, ...]:
    """The same refusal of the same pair again becomes one decision with several steps."""
    first: dict[object, Event] = {}
    steps: dict[object, list[int]] = {}
    for e in events:
        key: object = (e.pass_name, e.step)
        if e.event == "ineligible":
            consumer = facts.lineage.final(e.consumer) if e.consumer is not None else None
            key = (e.pass_name, e.producer, consumer, e.rule)
        first.setdefault(key, e)
        steps.setdefault(key, []).append(e.step)
    return tuple(
        Decision(
            e.pass_name,
            e.event,
            tuple(dict.fromkeys(steps[key])),
            e.producer,
            e.consumer,
            e.fusion,
            e.created,
            e.duplicated,
            facts.rule(e.rule),
            e.reason,
            e.figures,
            e.removed,
            e.added,
        )
        for key, e in first.items()
    )
