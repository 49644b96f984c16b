"""The decision about a producer and a consumer, and its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from hlofuse.account import PRIORITY_FUSION, PairDetail
from hlofuse.ir import Instruction, replace
from hlofuse.ir.names import Origin, own_name
from hlofuse.reports.common.facts import FURTHER_RESULTS, Facts
from hlofuse.reports.common.lineage import Lineage, is_view, view_read
from hlofuse.reports.common.model import Place
from hlofuse.trace import Event
from .model import Decision, PairAnswer

Request: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""A producer, a consumer, and the names that stand for parts of them (`Pair.inside`)."""

_Moment: TypeAlias = "tuple[Event, str | None]"
"""The event of which the costs are wanted, and of which consumer."""


def pairs_of(requests: Sequence[Request], facts: Facts) -> list[PairAnswer]:
    """The decision about each pair; one more replay gives the costs of all."""
    found = [_without_cost(*names, facts) for names in requests]
    moments = [moment for _, moment in found if moment is not None]
    details = iter(facts.costs.details(moments) if facts.costs is not None else [None] * len(moments))
    return [replace(pair, cost=next(details)) if moment is not None else pair for pair, moment in found]


def _without_cost(
    first: str, second: str, inside: tuple[tuple[str, str], ...], facts: Facts
) -> tuple[PairAnswer, _Moment | None]:
    """The pair, and when its cost is to be seen: where at no time, it has that of the final module."""
    producer, consumer, swapped = first, second, False
    touching = _touching(producer, consumer, facts)
    if not touching and not _feeds(producer, consumer, facts):
        reverse = _touching(consumer, producer, facts)
        if reverse or _feeds(consumer, producer, facts) or _path(consumer, producer, facts):
            producer, consumer, swapped, touching = second, first, True, reverse
    shared = [k for k in facts.lineage.kernels_of(producer) if k in set(facts.lineage.kernels_of(consumer))]
    fused = [e for e in touching if e.event == "fuse"]
    refused = [e for e in touching if e.event == "ineligible"]
    settled: Event | None = None
    path: tuple[str, ...] = ()
    refused_user: str | None = None
    before_results = [e for e in refused if e.pass_name not in FURTHER_RESULTS]
    direct = _feeds(producer, consumer, facts) or last_priority(producer, consumer, facts) is not None
    whole = _verdict_on_all_users(producer, facts) if direct else None
    if whole is not None and before_results and before_results[-1].step > whole.step:
        whole = None
    if fused and producer != consumer:  # also where the kernel is not there any more under that name
        shared = [k for k in shared if k in facts.after] or [
            facts.lineage.last_kernel(fused[-1].fusion or "")
        ]
    if shared and producer != consumer:
        outcome, settled = "fused", fused[-1] if fused else None
    elif whole is not None and whole.event == "priority":
        outcome = "does not pay"
    elif whole is not None:
        outcome, settled = "refused", whole
        if whole not in touching:
            touching.append(whole)
            refused_for = whole.consumer or consumer
            same = refused_for in (views := _views(producer, consumer, facts)) or (
                facts.lineage.final(refused_for) in (facts.lineage.final(consumer), *views)
            )
            refused_user = None if same else refused_for
    elif before_results:
        outcome, settled = "refused", before_results[-1]
    elif refused:
        outcome, settled = "refused", refused[-1]
    elif direct:
        outcome = "not considered"
    else:
        outcome, path = "apart", _path(producer, consumer, facts)
    decisions = collapse(touching, facts)
    kind = (settled.event, settled.pass_name) if settled is not None else ()
    able = (d for d in decisions if (d.event.event, d.event.pass_name) == kind)
    chosen = next((d for d in able if settled is not None and settled.step in d.steps), None)
    found = facts.instruction(producer)
    moment: _Moment | None = last_priority(producer, consumer, facts) if settled is None else None
    if settled is not None and settled.event == "fuse":
        moment = settled, None
    pair = PairAnswer(
        facts.place(producer),
        facts.place(consumer),
        swapped,
        outcome,
        chosen,
        decisions,
        tuple(facts.place(k) for k in shared),
        _executed_in(producer, facts),
        _executed_in(consumer, facts),
        found[0].shape.leaves_size if found is not None else 0,
        path,
        _final_cost(producer, consumer, facts) if moment is None else None,
        refused_user,
        inside,
        created_by=() if outcome == "fused" else facts.created_by(producer, consumer),
    )
    return pair, moment


def _verdict_on_all_users(producer: str, facts: Facts) -> Event | None:
    """Priority fusion's last verdict on a producer and all its users, fused together or not at all."""
    found = None
    first = facts.lineage.first_event(producer)
    for e in facts.replay.events[first:]:
        if e.pass_name == PRIORITY_FUSION and facts.lineage.is_same(producer, e.producer, e.origin(0)):
            found = e
    return found if found is not None and found.event != "fuse" else None


def last_priority(producer: str, consumer: str, facts: Facts) -> tuple[Event, str] | None:
    """When the pair was last estimated, and the consumer's name then; None if another verdict came after."""
    found = None
    first = facts.lineage.first_event(producer)
    inside, views = _Inside(consumer, facts.lineage), _views(producer, consumer, facts)
    for number, e in enumerate(facts.replay.events):
        if number >= first and facts.lineage.is_same(producer, e.producer, e.origin(0)):
            if e.event == "priority":
                pairs = zip(e.consumers, e.origins[1:], strict=True)
                name = next((c for c, origin in pairs if c in views or inside.holds(c, origin)), None)
                found = (e, name) if name is not None else None
            elif e.pass_name not in FURTHER_RESULTS:
                found = None
        inside.follow(e)
    return found


class _Inside:
    """The fusions that hold an instruction, as of the events followed so far."""

    def __init__(self, name: str, lineage: Lineage) -> None:
        self._name, self._lineage = name, lineage
        self._holders = {lineage.origin(name)}  # by the origins of their results

    def follow(self, event: Event) -> None:
        """Take one more event into account."""
        if event.event == "fuse" and own_name(event.origin(0)) in self._holders:
            self._holders.add(own_name(event.origin(1)) or "")

    def holds(self, name: str, origin: Origin) -> bool:
        return self._lineage.is_same(self._name, name, origin) or own_name(origin) in self._holders


def _final_cost(producer: str, consumer: str, facts: Facts) -> PairDetail | None:
    first = facts.after.get(facts.lineage.final(producer))
    second = facts.after.get(facts.lineage.final(consumer))
    if facts.costs is None or first is None or second is None or is_view(second):
        return None  # a view takes no time and is no kernel to compare with
    return facts.costs.pair(first, second)


def _executed_in(name: str, facts: Facts) -> tuple[Place, ...]:
    return tuple(facts.place(k) for k in facts.lineage.kernels_of(name) if k in facts.launched_after)


def _touching(producer: str, consumer: str, facts: Facts) -> list[Event]:
    """Decisions whether `producer` goes into `consumer` or into a fusion that holds it by then."""
    found, lineage = [], facts.lineage
    inside, direct = _Inside(consumer, lineage), _feeds(producer, consumer, facts)
    views, first = _views(producer, consumer, facts), max(map(lineage.first_event, (producer, consumer)))
    for number, e in enumerate(facts.replay.events):
        if number >= first and e.consumer is not None and lineage.is_same(producer, e.producer, e.origin(0)):
            same = e.consumer in views or lineage.is_same(consumer, e.consumer, e.origin(1))
            if same or (direct and inside.holds(e.consumer, e.origin(1))) or e.fusion == consumer:
                found.append(e)
        inside.follow(e)
    return found


def _feeds(producer: str, consumer: str, facts: Facts) -> bool:
    """It reads the value, in the input or after fusion, directly or as a view."""
    return bool(_used_through(producer, consumer, facts))


def _views(producer: str, consumer: str, facts: Facts) -> list[str]:
    return [user.name for user in _used_through(producer, consumer, facts) if is_view(user)]


def _used_through(producer: str, consumer: str, facts: Facts) -> list[Instruction]:
    ends = facts.lineage.final(producer), facts.lineage.final(consumer)
    found = []
    for module, (first, second) in ((facts.before, (producer, consumer)), (facts.after, ends)):
        p, c = module.get(first), module.get(second)
        user = view_read(p, c) if p is not None and c is not None and p is not c else None
        if user is not None:
            found.append(user)
    return found


def _path(producer: str, consumer: str, facts: Facts) -> tuple[str, ...]:
    """The shortest way from one to the other along users; empty if there is none."""
    start, goal = facts.before.get(producer), facts.before.get(consumer)
    if start is None or goal is None or start is goal:
        return ()
    came = {start: start}
    for x in (queue := [start]):  # grows while it is walked
        fresh = [user for user in x.users if user not in came]
        came |= dict.fromkeys(fresh, x)
        queue += fresh
    path = [goal] if goal in came else []
    while path and path[-1] is not start:
        path.append(came[path[-1]])
    return tuple(x.name for x in reversed(path))


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
        Decision(e, tuple(dict.fromkeys(steps[key])), facts.rule(e.rule)) for key, e in first.items()
    )
