"""From a replay to an explanation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlofuse.account import Costs
from hlofuse.analysis.loops import outermost_loops
from hlofuse.pipelines import TARGETS
from hlofuse.replay import PassResult, Replay
from hlofuse.reports.explain.blocking_rules import obstacles
from hlofuse.reports.explain.facts import Facts
from hlofuse.reports.explain.hot_kernels import dearest
from hlofuse.reports.explain.model import (
    Explanation,
    FusedGroup,
    FusedStep,
    PassStory,
    RecordCheck,
    Rewrite,
    RuleText,
)
from hlofuse.reports.explain.refusals import refusals
from hlofuse.trace import Event


def explain(
    replay: Replay,
    *,
    only_pass: str | None = None,
    computation: str | None = None,
    what_if: Sequence[str] = (),
    costs: Costs | None = None,
    record: RecordCheck | None = None,
    facts: Facts | None = None,
) -> Explanation:
    """Say what a replay means.

    `only_pass` and `computation` keep the decisions of that pass or computation alone; the totals stay
    those of the module. `what_if` names overrides the replay was made with; `costs` come with it from
    `observed_replay`; so do `facts`, where they are known already.
    """
    facts = facts or Facts(replay, costs)
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
        obstacles(stories, facts.rule),
        _rules(stories, facts),
        record,
        dearest(facts),
        outermost_loops(facts.replay.after),
        sum(bool(step.tied_with) for s in stories for g in s.fused for step in g.steps),
    )


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
