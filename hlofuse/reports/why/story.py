"""`why`: the meaning of a name, the story of an instruction, the decision about a pair with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

from msgspec import Struct

from hlofuse.account import PRIORITY_FUSION, Account, Costs, KernelTime, Launched, Observed, PairDetail
from hlofuse.account.bound import open_end
from hlofuse.account.collectives import Overlap, started_by
from hlofuse.account.flips import Flip
from hlofuse.analysis.components import depends_on
from hlofuse.analysis.kernels import is_small_call
from hlofuse.compilation import Compilation
from hlofuse.format import fields, listing, printable
from hlofuse.ir import HlofuseError, Instruction, Instructions, Module, Strings, grouped, replace
from hlofuse.ir.names import Origin, names_in, own_name
from hlofuse.passes.collectives import related
from hlofuse.pipelines.gpu.after_fusion import combiners
from hlofuse.reports.common.costs import limit_of
from hlofuse.reports.common.facts import FURTHER_RESULTS, Facts, place_of
from hlofuse.reports.common.lineage import Lineage, is_view, readers, through_views, view_read
from hlofuse.reports.common.model import TRIED_UP_TO, Place
from hlofuse.reports.common.names import Named, Names, holder_of, kernels_holding, runs_in
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Event
from hlofuse.trace.provenance import Change
from .model import Decision, PairAnswer, Story

Answer: TypeAlias = Story | PairAnswer
_MOST_PAIRS = 200  # each costs a walk through all decisions
_OTHERS = 20  # other collectives that a collective is compared with
Request: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""A producer, a consumer, and the names that stand for parts of them (`Pair.inside`)."""
_Moment: TypeAlias = "tuple[Event, str | None]"  # Event of which the costs are wanted, and of which consumer


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
    path: Strings = ()
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
    for e in facts.replay.events[facts.lineage.first_event(producer) :]:
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


def _used_through(producer: str, consumer: str, facts: Facts) -> Instructions:
    ends = facts.lineage.final(producer), facts.lineage.final(consumer)
    found = []
    for module, (first, second) in ((facts.before, (producer, consumer)), (facts.after, ends)):
        p, c = module.get(first), module.get(second)
        user = view_read(p, c) if p is not None and c is not None and p is not c else None
        if user is not None:
            found.append(user)
    return found


def _path(producer: str, consumer: str, facts: Facts) -> Strings:
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


def answers(
    replay: Compilation,
    name: str,
    other: str | None = None,
    *,
    costs: Costs | None = None,
    unoptimized: Callable[[], Module | None] | None = None,
    facts: Facts | None = None,
) -> list[Answer]:
    """The story of everything that `name` means, or what was decided about `name` and `other`.
    `common/names.py` says what a name is. Of two names with several meanings the pairs that are neighbours
    are answered. `unoptimized` loads the module before optimizations; `facts` are those of the replay, where
    they are at hand. HlofuseError with suggestions for a name without any meaning."""
    facts = facts or Facts(replay, costs)
    resolver = Names(facts, unoptimized)
    found = [resolver.find(text) for text in ((name,) if other is None else (name, other))]
    if other is None:
        meant = [*found[0], *resolver.added(name)]
        decided = _decisions([n.name for n in meant], facts)
        return [_story_of(n, resolver, decided[n.name]) for n in meant]
    removed = [n for meanings in found for n in meanings if n.fate is not None and n.fate.survivor is None]
    if removed:
        return [_story_of(removed[0], resolver, _Decided())]
    pairs = neighbours(found[0], found[1], facts)
    if len(pairs) > _MOST_PAIRS:
        raise HlofuseError(
            f"{printable(name)} and {printable(other)} match {len(pairs):,} adjacent pairs, more than"
            f" {_MOST_PAIRS}; give a source line or an instruction"
        )
    changes = [(*_changes(a), *_changes(b)) for a, b in pairs]
    results = pairs_of([_request(a.name, b.name, facts) for a, b in pairs], facts)
    return [
        replace(pair, before_fusion=before_fusion) if before_fusion else pair
        for pair, before_fusion in zip(results, changes, strict=True)
    ]


def _changes(named: Named) -> tuple[Change, ...]:
    return named.fate.changes if named.fate is not None else ()


def _story_of(named: Named, resolver: Names, decided: _Decided) -> Story:
    facts = resolver.facts
    if named.is_added:  # a copy or another instruction of XLA's final module, which no fusion pass has seen
        module = facts.replay.final
        added = module.find(named.name)
        assert added is not None
        place = replace(place_of(added, module), final="")
        copies = added.operand.name if added.opcode == "copy" and added.operands else None
        launch = facts.account_after.by_name.get(named.name)
        story = Story(place, "added", copies=copies, created_by=facts.created_after_fusion(added))
        return story if launch is None else _with_time(story, launch, facts)
    if named.fate is not None and named.fate.survivor is None:
        found = resolver.unoptimized.find(named.name) if resolver.unoptimized is not None else None
        assert found is not None
        place = Place(named.name, found.opcode, str(found.shape), op_name=found.op_name)
        return Story(place, "gone", before_fusion=named.fate.changes)
    meant = () if named.operations == (named.name,) else named.operations
    return replace(story_of(named.name, facts, decided), before_fusion=_changes(named), meant=meant)


def why_each(pairs: Iterable[tuple[str, str]], facts: Facts) -> list[PairAnswer]:
    """The decisions about each pair; much faster than one after the other."""
    resolver = Names(facts)
    names = [(resolver.find(first)[0].name, resolver.find(second)[0].name) for first, second in pairs]
    return pairs_of([_request(*pair, facts) for pair in names], facts)


def _request(first: str, second: str, facts: Facts) -> Request:
    outer = [
        (name, holder.name) for name in (first, second) if (holder := holder_of(name, facts)) is not None
    ]
    final_names = dict(outer)
    producer = final_names.get(first, first)
    consumer = final_names.get(second, second)
    if producer == consumer:  # both in one, or one in the other
        return first, second, tuple(outer)
    return producer, consumer, tuple(outer)


class _Decided(Struct):
    giving: list[Event] = []
    taking: list[Event] = []
    rewrites: list[Event] = []


def _decisions(names: Iterable[str], facts: Facts) -> dict[str, _Decided]:
    """The decisions about each, in one pass through the events, however often it was renamed."""
    found = {name: _Decided() for name in names}
    lineage = facts.lineage
    by_origin = grouped((lineage.origin(name), name) for name in found)

    @cache
    def named_in(origin: Origin) -> list[str]:
        return [n for o in names_in(origin) for n in by_origin.get(o, ())]

    def meant(now: str | None, names: Iterable[str], number: int) -> dict[str, None]:
        same = [n for n in names if lineage.first_event(n) <= number]
        return dict.fromkeys([*same, now] if now in found else same)

    for number, e in enumerate(facts.replay.events):
        if e.event == "rewrite":
            removed = {lineage.origin(name) for name in e.removed}
            for origin in e.origins:
                if own_name(origin) in removed:
                    removed |= set(names_in(origin))
            named = (n for n in (*e.removed, *e.added) if n in found)
            same = (n for o in removed for n in by_origin.get(o, ()))
            for name in meant(None, same, number) | dict.fromkeys(named):
                found[name].rewrites.append(e)
        elif e.event != "priority" and (
            e.producer in found or e.consumer in found or e.fusion in found or any(map(named_in, e.origins))
        ):
            giving = meant(e.producer, named_in(e.origin(0)), number)
            taking = meant(e.consumer, named_in(e.origin(1)), number) | meant(e.fusion, (), number)
            for name in giving:
                found[name].giving.append(e)
            for name in taking.keys() - giving.keys():
                found[name].taking.append(e)
    return found


def story_of(name: str, facts: Facts, decided: _Decided | None = None) -> Story:
    """All that happened to one instruction; `decided` where it is known already."""
    holder = holder_of(name, facts)
    if holder is not None:
        elsewhere = tuple(facts.place(k) for k in runs_in(holder.name, facts) if k != holder.name)
        return Story(facts.place(name), "inside", elsewhere, (), (), (), (), facts.place(holder.name))
    decided = decided or _decisions([name], facts)[name]
    final = facts.lineage.final(name)
    runs = runs_in(name, facts)
    if name in facts.launched_after:
        fate = "kernel"
    elif runs:
        fate = "fused"
    else:
        fate = "no kernel" if final in facts.after else "gone"
    created = name not in facts.before or fate == "kernel"
    launch = facts.launched_as(name) if fate == "kernel" else None
    holds = [m for m in facts.lineage.members(final) if m in facts.before and m != final] if created else []
    giving = collapse(decided.giving, facts)
    taking = collapse(decided.taking, facts)
    found = Story(
        facts.place(name),
        fate,
        tuple(facts.place(k) for k in runs if k != name),
        tuple(holds) if len(holds) > 1 else (),
        giving,
        taking,
        collapse(decided.rewrites, facts),
        holder=_call_of(name, facts) if fate == "kernel" else None,
        created_by=facts.created_by(name),
        apart=_apart(name, facts) if fate == "kernel" else (),
    )
    if launch is None:
        return found
    return replace(
        _with_time(found, launch, facts),
        apart=found.apart if launch.kind != "collective" else (),
        communication=tuple(_communication(launch.instruction, facts)),
    )


def _with_time(story: Story, launch: Launched, facts: Facts) -> Story:
    kernel = facts.costs.kernel(launch.instruction) if facts.costs is not None else None
    return timed(story, launch, kernel)


def timed(
    story: Story,
    launch: Launched,
    kernel: KernelTime | None,
) -> Story:
    limit = limit_of(kernel, launch.us) if kernel is not None and launch.us else ""
    return replace(
        story,
        **fields(launch, "is_floor runs per_iteration"),
        us=None if launch.is_open else launch.us,
        limited_by=open_end(launch) if launch.is_floor else limit,
    )


def _communication(x: Instruction, facts: Facts) -> Iterator[str]:
    """What runs meanwhile and what is not combined, of a collective of a GPU's final module."""
    account = facts.account_after
    start = started_by(x)
    kinds = {c.instruction: c.exchange.kind for c in account.collectives}
    if x not in kinds or account.backend != "gpu":
        return
    overlap = next(c.overlap for c in account.collectives if c.instruction is x)
    if overlap is not None:
        yield meanwhile(overlap, start, account)
    flags = facts.replay.config.build.flags
    others = [o for o in kinds if kinds[o] == kinds[x] and o is not x][:_OTHERS]
    near = (o for o in others if started_by(o).computation is start.computation)
    for reason, names in grouped((_not_combined(x, o, flags), o.name) for o in near).items():
        if reason:
            yield f"Not combined with {listing(names, 3)}: {reason}."


def meanwhile(overlap: Overlap, start: Instruction, account: Account) -> str:
    """The kernels that run while a collective does, or could."""
    if overlap.between:
        return f"Between its start and its done: {listing([i.name for i in overlap.between], 3)}."
    others = {r.instruction for r in account.rows if r.kind != "collective" and r.us != 0}
    others -= related(start)
    free = [i.name for i in start.computation or () if i in others]
    if free:
        return f"Nothing runs meanwhile in XLA's schedule, though independent of it: {listing(free, 3)}."
    return "Nothing can run meanwhile: all other kernels of its computation wait for it or feed it."


def _not_combined(x: Instruction, other: Instruction, flags: Strings) -> str:
    """The reason why two collectives of a computation are not one; "" where it is not known."""
    first = started_by(x)
    second = started_by(other)
    if depends_on(second, first) or depends_on(first, second):
        return "one waits for the other"
    for combiner in combiners(flags):
        if combiner.opcode == x.opcode:
            return combiner.difference(x, other)
    return ""


def _apart(name: str, facts: Facts) -> tuple[tuple[Place, Rule], ...]:
    """The kernels next to this one, most bytes between them first, each with the last rule against it."""
    own = facts.launched_after[name]
    last = facts.last_rule_between
    between = {i.name: own.byte_size for i in readers(own)}
    for operand in map(through_views, own.operands):
        between.setdefault(operand.name, operand.byte_size)
    rules = {n: last.get(frozenset((name, n))) for n in between if n in facts.launched_after}
    refused = [n for n in sorted(between, key=between.__getitem__, reverse=True) if rules.get(n)]
    return tuple((facts.place(n), facts.rule(rules[n])) for n in refused)


def _call_of(name: str, facts: Facts) -> Place | None:
    """The call that XLA compiles into one kernel, with this kernel in it; None for one that is launched."""
    if facts.launched_as(name) is not None:
        return None
    final = facts.account_after.module
    names = facts.replay.names_at_fusion
    holders = kernels_holding((i for i in final.instructions() if names.get(i.name) == name), final)
    return next((facts.final_place(k) for k in holders if is_small_call(k)), None)


def in_the_input(names: Sequence[str], xla: Compilation) -> list[str]:
    """Each name, or the operation of the input for it: the result of a producer, what reads it of a consumer.
    Fusions are numbered as they come, so that the same number is another fusion in another run."""
    before = {i.name: i for i in xla.before.instructions()}
    lineage = Lineage(xla.before, xla.after, xla.events)
    plain = [name.strip().lstrip("%") for name in names]
    holders = [
        [n] if n in before else [m for m in (*lineage.members(n), lineage.origin(n)) if m in before]
        for n in plain
    ]
    if not all(holders):
        return plain
    first, *others = holders
    for second in others:
        for producer in first:
            for consumer in second:
                if view_read(before[producer], before[consumer]) is not None:
                    return [producer, consumer]
    return [h[0] for h in holders]


Pair: TypeAlias = tuple[Named, Named]


def neighbours(first: Sequence[Named], second: Sequence[Named], facts: Facts) -> list[Pair]:
    """The pairs of which one reads the other: kernels, and operations of one kernel, one pair of each. Where
    there is no such pair, operations that are neighbours at the input of fusion; else the first ones."""
    if len(first) == len(second) == 1 and first[0].name != second[0].name:
        return [(first[0], second[0])]
    wanted: dict[str, Named] = {}
    for b in second:
        wanted.setdefault(facts.lineage.final(b.name), b)
        wanted.setdefault(b.name, b)
    found: dict[frozenset[str], Pair] = {}  # they read one another, at the input of fusion or after it
    for a in first:
        names = {a.name, facts.lineage.final(a.name)}
        around = (wanted[n] for name in names for n in _around(name, facts) if n in wanted)
        for b in (b for b in around if b.name not in names):
            found.setdefault(frozenset((a.name, b.name)), (a, b))
    pairs, others = list(found.values()), {b.name: b for b in second}
    for a in first:  # one pair inside each kernel that both mean
        pairs += _of_operations([a], [others[a.name]], facts)[:1] if a.name in others else []
    return pairs or _of_operations(first, second, facts)[:1] or [(first[0], second[0])]


def _of_operations(first: Sequence[Named], second: Sequence[Named], facts: Facts) -> list[Pair]:
    wanted = {name: b for b in second for name in b.operations or (b.name,)}
    return [
        (replace(a, name=name), replace(wanted[other], name=other))
        for a in first
        for name in a.operations or (a.name,)
        for other in dict.fromkeys(_around(name, facts))
        if other in wanted and other != name
    ]


def _around(name: str, facts: Facts) -> Iterator[str]:
    """Its readers and operands, through views, at the input of fusion and after it."""
    for x in filter(None, (facts.before.get(name), facts.after.get(name))):
        yield from (i.name for i in (*readers(x), *map(through_views, x.operands)))


def confirmed(
    found: Sequence[Answer], observed: Observed, replayed: Callable[[str], Observed], facts: Facts
) -> list[Answer]:
    """The answers with only those flips that `replayed`, given `NAME=VALUE`, decides as they say."""
    if len(facts.before) > TRIED_UP_TO:
        return list(found)
    cache = {}

    def decides(pair: PairAnswer, flip: Flip) -> bool:
        change = flip_setting(flip)
        if change not in cache:
            cache[change] = Facts(replayed(change).replay)
        return _is_one_kernel(pair, cache[change], observed) != _is_one_kernel(pair, facts, observed)

    out = []
    for answer in found:
        if isinstance(answer, PairAnswer) and answer.cost is not None and answer.cost.flips:
            flips = tuple(f for f in answer.cost.flips if decides(answer, f))
            answer = replace(answer, cost=replace(answer.cost, flips=flips))
        out.append(answer)
    return out


def flip_setting(flip: Flip) -> str:
    """`core_count=80`, as `--set` takes it."""
    value = f"{flip.value:.0f}" if flip.value == int(flip.value) else f"{flip.value:.10g}"
    return f"{flip.number}={value}"


def _is_one_kernel(pair: PairAnswer, facts: Facts, observed: Observed) -> bool:
    """True if the operations of the input that the two stand for end up in one kernel."""
    names = in_the_input((pair.producer.name, pair.consumer.name), observed.replay)
    first, second = (set(facts.lineage.kernels_of(name)) for name in names)
    return not first.isdisjoint(second)
