"""The final refusal of each producer–consumer pair."""

from collections.abc import Iterator, Mapping, Sequence

from hlofuse.account import PRIORITY_FUSION
from hlofuse.compilation import Compilation
from hlofuse.format import us_text
from hlofuse.ir import grouped
from hlofuse.ir.names import own_name
from hlofuse.rules.priority_fusion.conditions import DOES_NOT_PAY
from hlofuse.trace import Event
from .facts import FURTHER_RESULTS, Facts
from .lineage import is_view, readers, through_views, view_read
from .model import Refusal

KernelNames = tuple[str, str | None]  # Producer and consumer, by their final names


def refusals(events: Sequence[Event], facts: Facts, *, between_only: bool = False) -> tuple[Refusal, ...]:
    """The final verdicts, one for each pair, greatest value first. A refusal does not count if its pair was
    fused later, or its producer or consumer was removed. With `between_only` those between kernels."""
    key: KernelNames
    last: dict[KernelNames, tuple[Event, str | None]] = {}
    """The event and the consumer it speaks of, under the name that had then."""
    steps: dict[KernelNames, list[int]] = {}
    whole: dict[str, Event] = {}  # Last event of priority fusion about a producer, by its result's origin
    spans: dict[str, tuple[dict[str, Event], set[str]]] = {}
    """For each producer its last priority for each user until another event, and the users so far."""
    about = []
    for e in events:
        if e.producer is not None and e.event != "rewrite":
            producer = facts.lineage.final(e.producer)
            if e.event != "priority" or producer not in spans:
                spans[producer] = {}, set()
            spans[producer][0].update(dict.fromkeys(e.consumers, e))
            about.append((e, producer, *spans[producer]))
    for e, producer, newest, seen in about:
        if e.pass_name == PRIORITY_FUSION:
            origin = own_name(e.origin(0)) or e.producer or ""
            whole.pop(origin, None)
            if e.event == "ineligible":
                whole[origin] = e
        if between_only and not facts.is_kernel(producer):
            continue
        if e.event == "priority":
            for name in e.consumers:
                if newest[name] is e or name not in seen:
                    key = (producer, facts.lineage.final(name))
                    last[key] = e, name
                    steps[key] = [e.step]
            seen.update(e.consumers)
            continue
        key = (producer, facts.lineage.final(e.consumer) if e.consumer is not None else None)
        if e.event == "fuse":
            last.pop(key, None)
        else:
            last[key] = e, e.consumer
            steps.setdefault(key, []).append(e.step)
    found = [r for key, (e, name) in last.items() for r in _refusals(key, e, name, steps[key], facts)]
    by_pair = grouped(((r.kernel, r.consumer), r) for r in found if r.between_kernels or not between_only)
    for e in whole.values():
        producer = facts.lineage.final(e.producer or "")
        if not facts.is_kernel(producer):
            continue
        for r in _of_other_users(producer, e, last, facts):
            own = by_pair.get((r.kernel, r.consumer), [])
            if all(o.steps[-1] < e.step for o in own):  # the last word on the producer is about all its users
                by_pair[r.kernel, r.consumer] = [r]
    found = [r for refused in by_pair.values() for r in refused]
    found.sort(key=lambda r: (not r.between_kernels, -(r.us_at_stake or 0.0), -r.bytes_between, r.steps[0]))
    return tuple(found)


def _of_other_users(
    producer: str, e: Event, last: Mapping[KernelNames, tuple[Event, str | None]], facts: Facts
) -> Iterator[Refusal]:
    """Priority fusion takes a producer into all users or none. `last`: the users for which that is known."""
    instruction = facts.after.get(producer)
    users = list(instruction.users) if instruction is not None else []
    if e.producer is not None and e.producer != producer:
        # It is one of several results now: those who read the others were not asked about.
        alone = facts.before.get(e.producer)
        names = (
            [u.name for u in alone.users]
            if alone is not None
            else list(facts.refused_consumers.get(e.producer, ()))
        )
        users = [facts.after[n] for n in map(facts.lineage.final, names) if n in facts.after]
    for user in dict.fromkeys(users):
        previous = last.get((producer, user.name))
        if previous is not None and previous[0] is e:
            continue
        for refusal in _refusals((producer, user.name), e, user.name, [e.step], facts, e.consumer):
            if refusal.between_kernels:
                yield refusal


def _refusals(
    key: KernelNames,
    event: Event,
    considered: str | None,
    steps: list[int],
    facts: Facts,
    refused_user: str | None = None,
) -> Iterator[Refusal]:
    """The refusal; where a view was asked about, that of each kernel which reads the value through it."""
    producer, launched = facts.after.get(key[0]), facts.launched_after
    consumer = facts.after.get(key[1]) if key[1] is not None else None
    if producer is None or (consumer is None and key[1] is not None):
        return
    users = [consumer]
    if consumer is not None and is_view(consumer):
        users = [*filter(lambda r: r.name in launched, readers(consumer))] or users
    for user in users:
        size = producer.shape.leaves_size
        if user is not None and view_read(producer, user) is None:  # siblings, or no pair any more
            shared = set(producer.operands).intersection(user.operands)
            if event.pass_name not in FURTHER_RESULTS or not shared or user is producer:
                continue
            size = sum(x.shape.leaves_size for x in shared)
        rule, reason, figures = event.rule, event.reason, event.figures
        if event.event == "priority":
            worth = facts.costs.sums(producer) if facts.costs is not None else None
            if worth is None or worth[1] <= worth[0]:
                # Later passes have made it cheaper; what counted is what was estimated then.
                then = event.us_unfused, event.us_fused
                if then[0] is None or then[1] is None or then[1] <= then[0]:
                    continue
                worth = float(then[0]), float(then[1])
            rule, figures = DOES_NOT_PAY.code, {"us_unfused": worth[0], "us_fused": worth[1]}
            reason = f"fused {us_text(worth[1])}, unfused {us_text(worth[0])}"
        computed, name = through_views(producer).name, user.name if user is not None else None
        between = computed in launched and name in launched
        at_stake = figures["us_unfused"] - figures["us_fused"] if rule == DOES_NOT_PAY.code else None
        if at_stake is None and between and event.pass_name == PRIORITY_FUSION and facts.costs is not None:
            at_stake = facts.costs.at_stake(producer)
        runs = facts.runs(computed) if between else 1
        yield Refusal(
            facts.place(event.producer or ""),
            name,
            considered,
            rule,
            reason,
            figures,
            tuple(dict.fromkeys(steps)),
            between,
            size * runs,
            refused_user=refused_user,
            kernel=computed,
            consumer_final=facts.final_name_of(name) if name is not None else None,
            created_by=facts.created_by(computed, name) if between else (),
            us_at_stake=at_stake * runs if at_stake is not None else None,
        )


def refusals_between_kernels(created: Compilation, facts: Facts) -> dict[KernelNames, Refusal]:
    """The verdict on each pair of kernels; of several passes that of the first."""
    out: dict[KernelNames, Refusal] = {}
    for p in created.passes:
        for r in refusals(p.events, facts, between_only=True):
            out.setdefault((r.kernel or r.producer.name, r.consumer), r)
    return out
