"""From a replay to an explanation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import is_kernel, launched_computations
from hlofuse.analysis.shape_size import leaves_size
from hlofuse.explainer.cost_words import us_text
from hlofuse.explainer.costs import PRIORITY_FUSION, Costs
from hlofuse.explainer.lineage import Lineage
from hlofuse.explainer.model import (
    Explanation,
    FusedGroup,
    FusedStep,
    PassStory,
    Place,
    RecordCheck,
    Refusal,
    Rewrite,
    RuleText,
    Totals,
)
from hlofuse.explainer.obstacles import obstacles
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines import TARGETS, PassResult, Replay
from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.priority_fusion.cost import DOES_NOT_PAY
from hlofuse.trace import Event


def explain(
    replay: Replay,
    *,
    only_pass: str | None = None,
    computation: str | None = None,
    what_if: Sequence[str] = (),
    costs: Costs | None = None,
    record: RecordCheck | None = None,
) -> Explanation:
    """Say what a replay means.

    `only_pass` and `computation` keep the decisions of that pass or computation alone; the totals stay
    those of the module. `what_if` names overrides the replay was made with; `costs` come with it from
    `observed_replay`.
    """
    facts = Facts(replay, costs)
    stories = [_story(p, facts, computation) for p in replay.passes]
    stories = [p for p in _counted_once(stories) if only_pass is None or p.name == only_pass]
    target = TARGETS[replay.target]
    return Explanation(
        replay.before.name,
        replay.before.filename,
        replay.target,
        replay.device,
        target.title,
        target.release,
        tuple(what_if),
        facts.totals_before,
        facts.totals_after,
        tuple(stories),
        obstacles((r for s in stories for r in s.refused), facts.rule),
        _rules(stories, facts),
        record,
        sum(bool(step.tied_with) for s in stories for g in s.fused for step in g.steps),
    )


TIE_WORK = 400
"""Ties are tried the other way round where that repeats no more fusions than this: less than a second."""


class Facts:
    """What several parts of an explanation ask about a replay, worked out once."""

    def __init__(self, replay: Replay, costs: Costs | None = None) -> None:
        self.replay = replay
        self.costs = costs
        self.lineage = Lineage(replay.events)
        self.before = {i.name: i for i in replay.before.instructions()}
        self.after = {i.name: i for c in _outer(replay.after) for i in c}
        self.costs_before = CostAnalysis()
        self.costs_after = CostAnalysis()
        self.launched_before = _launched(replay.before)
        self.launched_after = _launched(replay.after)
        self.totals_before = self._totals(self.launched_before, self.costs_before, replay.before)
        self.totals_after = self._totals(self.launched_after, self.costs_after, replay.after)
        self._catalogue = catalogue()

    def _totals(self, launched: dict[str, Instruction], counts: CostAnalysis, module: Module) -> Totals:
        cost = counts.computation(module.entry)
        if self.costs is None:
            return Totals(len(launched), cost)
        return Totals(len(launched), cost, *self.costs.total(launched.values()))

    def other_order(self, e: Event) -> tuple[str, ...] | None:
        """Operations of the input that end in other kernels with a tie settled otherwise; None for no tie."""
        tied = self.costs.tied_with(e) if self.costs is not None else ()
        if self.costs is None or not tied:
            return None
        moved: dict[str, None] = {}
        for producer in tied:
            other = self.costs.other_order(e, producer)
            if other is not None:
                moved |= dict.fromkeys(_moved(self, Facts(other)))
        return tuple(moved)

    def company(self) -> dict[str, set[frozenset[str]]]:
        """Of each operation of the input: what else is in the kernels it ends in."""
        found: dict[str, set[frozenset[str]]] = {}
        for kernel in self.launched_after:
            together = frozenset(m for m in self.lineage.members(kernel) if m in self.before)
            for name in together:
                found.setdefault(name, set()).add(together)
        return found

    def home(self, fusion: str) -> str:
        """The kernel of the final module that holds what this fusion held; the last, if there are several."""
        final = self.lineage.final(fusion)
        seen = {final}
        while final not in self.after:
            into = self.lineage.taken_by(final)
            if into is None or (into := self.lineage.final(into)) in seen:
                break
            seen.add(into)
            final = into
        return final

    def rule(self, code: str | None) -> RuleText:
        """The catalogue's words for a code; the bare code for one that has no entry."""
        entry = self._catalogue.get(code or "")
        if entry is None:
            return RuleText(code or "", "")
        return RuleText(entry.code, entry.title, entry.advice, entry.message, entry.why)

    def instruction(self, name: str) -> tuple[Instruction, Module] | None:
        """The instruction of that name in the module before, else after."""
        if name in self.before:
            return self.before[name], self.replay.before
        if name in self.after:
            return self.after[name], self.replay.after
        final = self.lineage.final(name)
        return (self.after[final], self.replay.after) if final in self.after else None

    def place(self, name: str) -> Place:
        """Where a reader finds it; the name alone for what came and went during the replay."""
        found = self.instruction(name)
        if found is None:
            return Place(name)
        instruction, module = found
        source = module.source_of(instruction)
        text = None
        if source is not None:
            text = f"{source} {source.function}" if source.function else str(source)
        return Place(name, instruction.opcode, str(instruction.shape), text, instruction.op_name)


def _moved(one: Facts, other: Facts) -> list[str]:
    """Operations that the two replays put into kernels with something in it that the other has not."""
    first, second = one.company(), other.company()
    told = (name for name, i in one.before.items() if i.opcode not in ("constant", "bitcast", "parameter"))
    return [name for name in told if first.get(name) != second.get(name)]


def _launched(module: Module) -> dict[str, Instruction]:
    return {i.name: i for c in launched_computations(module) for i in c if is_kernel(i)}


def _outer(module: Module) -> Iterable[Iterable[Instruction]]:
    return (c for c in module.computations if c.fusion is None)


def _rules(stories: Iterable[PassStory], facts: Facts) -> dict[str, RuleText]:
    codes: set[str | None] = set()
    for s in stories:
        codes.update(step.rule for g in s.fused for step in g.steps)
        codes.update(r.rule for r in s.refused)
        codes.update(r.rule for r in s.rewrites)
    return {code: facts.rule(code) for code in sorted(c for c in codes if c)}


def _story(result: PassResult, facts: Facts, computation: str | None) -> PassStory:
    events = [e for e in result.events if computation is None or e.computation == computation]
    rewrites = []
    for e in events:
        if e.event == "rewrite":
            source = facts.place(e.removed[0]).source if e.removed else None
            rewrites.append(Rewrite(e.step, e.removed, e.added, e.rule, e.reason, source))
    return PassStory(
        result.name,
        result.changed,
        _fused(events, facts),
        refusals(events, facts),
        tuple(rewrites),
        len(events),
    )


# ------------------------------------------------------------ fused


def _counted_once(stories: Sequence[PassStory]) -> Iterable[PassStory]:
    """A kernel that an earlier pass has made saves what it saves there; later passes add what they share."""
    seen: set[str] = set()
    for story in stories:
        groups = []
        for g in story.fused:
            if g.fusion.name in seen:
                shared = (s.figures.get("shared_bytes", 0) for s in g.steps)
                g = replace(g, bytes_saved=sum(b for b in shared if isinstance(b, int)))
            groups.append(g)
        seen.update(g.fusion.name for g in groups)
        yield replace(story, fused=tuple(groups))


def _fused(events: Sequence[Event], facts: Facts) -> tuple[FusedGroup, ...]:
    steps: dict[str, list[FusedStep]] = {}
    homes: dict[str, str] = {}
    consumers = Counter(e.producer for e in events if e.event == "fuse")
    ties_are_tried = facts.costs is not None and facts.costs.work_of_other_orders <= TIE_WORK
    for e in events:
        if e.event != "fuse" or e.fusion is None:
            continue
        final = facts.home(e.fusion)
        homes.setdefault(final, e.computation)
        steps.setdefault(final, []).append(
            FusedStep(
                e.step,
                facts.place(e.producer or ""),
                e.consumer or "",
                e.fusion,
                e.created,
                e.duplicated,
                e.kind or "",
                e.rule,
                e.reason,
                e.figures,
                facts.costs.fusion(e) if facts.costs is not None else None,
                facts.costs.tied_with(e) if facts.costs is not None else (),
                facts.other_order(e) if ties_are_tried else None,
                consumers[e.producer],
            )
        )
    groups = [_group(final, taken, homes[final], facts) for final, taken in steps.items()]
    groups.sort(key=lambda g: (-(g.us_saved or 0.0), -g.bytes_saved, g.steps[0].step))
    return tuple(groups)


def _group(final: str, steps: list[FusedStep], home: str, facts: Facts) -> FusedGroup:
    saved = -facts.costs_after.instruction(facts.after[final]).bytes_accessed if final in facts.after else 0
    inside = [name for name in facts.lineage.members(final) if name in facts.before]
    for name in inside:
        if name not in facts.after:  # where it still runs on its own as well, nothing is saved
            copies = sum(k in facts.after for k in facts.lineage.kernels_of(name)) or 1
            saved += facts.costs_before.instruction(facts.before[name]).bytes_accessed // copies
    kernel, us_saved = None, None
    if facts.costs is not None:
        told = [s.us_saved for s in steps if s.us_saved is not None]
        us_saved = sum(told) if told else None
        kernel = facts.costs.kernel(facts.after[final]) if final in facts.after else None
    return FusedGroup(
        facts.place(final), home, tuple(steps), saved, tuple(inside), kernel=kernel, us_saved=us_saved
    )


# ------------------------------------------------------------ refused


def refusals(events: Sequence[Event], facts: Facts) -> tuple[Refusal, ...]:
    """The verdicts that stood in the end, one for each pair, greatest value first.

    A refusal whose pair was fused later, or whose producer or consumer is gone, stood for a while only.
    """
    key: tuple[str, str | None]
    last: dict[tuple[str, str | None], Event] = {}
    steps: dict[tuple[str, str | None], list[int]] = {}
    for e in events:
        if e.producer is None or e.event == "rewrite":
            continue
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
    found = []
    for key, event in last.items():
        refusal = _refusal(key, event, steps[key], facts)
        if refusal is not None:
            found.append(refusal)
    found.sort(key=lambda r: (not r.between_kernels, -(r.us_at_stake or 0.0), -r.bytes_between, r.steps[0]))
    return tuple(found)


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
        at_stake,
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
