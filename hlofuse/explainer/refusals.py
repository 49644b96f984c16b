"""The verdicts that stood in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hlofuse.analysis.shape_size import leaves_size
from hlofuse.explainer.costs import PRIORITY_FUSION
from hlofuse.explainer.facts import Facts
from hlofuse.explainer.model import (
    Refusal,
)
from hlofuse.ir.instruction import Instruction
from hlofuse.present.units import us_text
from hlofuse.rules.priority_fusion.cost import DOES_NOT_PAY
from hlofuse.trace import Event


def refusals(events: Sequence[Event], facts: Facts) -> tuple[Refusal, ...]:
    """The verdicts that stood in the end, one for each pair, greatest value first.

    A refusal whose pair was fused later, or whose producer or consumer is gone, stood for a while only.
    """
    key: tuple[str, str | None]
    last: dict[tuple[str, str | None], Event] = {}
    steps: dict[tuple[str, str | None], list[int]] = {}
    whole: dict[str, Event] = {}
    for e in events:
        if e.producer is None or e.event == "rewrite":
            continue
        if e.pass_name == PRIORITY_FUSION:
            whole.pop(facts.lineage.final(e.producer), None)
            if e.event == "ineligible" and e.consumer is not None:
                whole[facts.lineage.final(e.producer)] = e
        if e.event == "priority":
            for name in e.consumers:
                key = (facts.lineage.final(e.producer), facts.lineage.final(name))
                last[key] = replace(e, consumer=name)
                steps[key] = [e.step]
            continue
        consumer = facts.lineage.final(e.consumer) if e.consumer is not None else None
        key = (facts.lineage.final(e.producer), consumer)
        if e.event == "fuse":
            last.pop(key, None)
        else:
            last[key] = e
            steps.setdefault(key, []).append(e.step)
    found = [r for key, e in last.items() if (r := _refusal(key, e, steps[key], facts)) is not None]
    for producer, e in whole.items():
        found += _of_other_users(
            producer, e, {r.consumer for r in found if r.producer.name == e.producer}, facts
        )
    found.sort(key=lambda r: (not r.between_kernels, -(r.us_at_stake or 0.0), -r.bytes_between, r.steps[0]))
    return tuple(found)


def _of_other_users(producer: str, e: Event, told: set[str | None], facts: Facts) -> Iterator[Refusal]:
    """Priority fusion takes a producer into all its users or none: what is said of one holds for all."""
    instruction = facts.after.get(producer)
    for user in instruction.users if instruction is not None else ():
        if user.name not in told:
            refusal = _refusal((producer, user.name), replace(e, consumer=user.name), [e.step], facts)
            if refusal is not None and refusal.between_kernels:
                yield replace(refusal, said_of=e.consumer)


def _refusal(key: tuple[str, str | None], event: Event, steps: list[int], facts: Facts) -> Refusal | None:
    producer = facts.after.get(key[0])
    consumer = facts.after.get(key[1]) if key[1] is not None else None
    if producer is None or (key[1] is not None and (consumer is None or producer not in consumer.operands)):
        return None
    launched = facts.launched_after
    rule, reason, figures = event.rule, event.reason, event.figures
    if event.event == "priority":
        worth = facts.costs.sums(producer) if facts.costs is not None else None
        if worth is None or worth[1] <= worth[0]:
            # Later passes have made it cheaper; what counted is what was estimated then.
            then = event.us_unfused, event.us_fused
            if then[0] is None or then[1] is None or then[1] <= then[0]:
                return None
            worth = float(then[0]), float(then[1])
        rule, figures = DOES_NOT_PAY.code, {"us_unfused": worth[0], "us_fused": worth[1]}
        reason = f"fused {us_text(worth[1])}, unfused {us_text(worth[0])}"
    upstream = through_views(producer)
    between = consumer is not None and upstream.name in launched and _reaches_kernel(consumer, launched)
    at_stake = figures["us_unfused"] - figures["us_fused"] if rule == DOES_NOT_PAY.code else None
    if at_stake is None and facts.costs is not None and between and event.pass_name == PRIORITY_FUSION:
        at_stake = facts.costs.at_stake(producer)
    return Refusal(
        facts.place(event.producer or ""),
        key[1],
        event.consumer,
        rule,
        reason,
        figures,
        tuple(dict.fromkeys(steps)),
        between,
        leaves_size(producer.shape),
        us_at_stake=at_stake,
    )


_VIEWS = frozenset({"bitcast", "get-tuple-element"})


def through_views(instruction: Instruction) -> Instruction:
    """What computes a value that is only seen differently here."""
    while instruction.opcode in _VIEWS and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def _reaches_kernel(consumer: Instruction, launched: dict[str, Instruction]) -> bool:
    """A kernel reads it, directly or as a view."""
    stack, seen = [consumer], {consumer}
    while stack:
        current = stack.pop()
        if current.name in launched:
            return True
        if current.opcode in _VIEWS:
            for user in current.users:
                if user not in seen:
                    seen.add(user)
                    stack.append(user)
    return False
