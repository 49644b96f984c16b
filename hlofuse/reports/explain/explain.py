"""From a replay to an explanation."""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence

from hlofuse.account import Costs, KernelTime, Launched, Observed
from hlofuse.account.bound import open_end
from hlofuse.account.cpu import CpuTimes
from hlofuse.analysis.kernels import expansion_of
from hlofuse.compilation import Compilation, PassResult
from hlofuse.ir import Instruction, grouped, replace
from hlofuse.pipelines import TARGETS
from hlofuse.reports.common.facts import FURTHER_RESULTS, Facts
from hlofuse.reports.common.model import Place, Refusal, us_at_stake
from hlofuse.reports.common.names import Names
from hlofuse.reports.common.refusals import refusals
from hlofuse.rules.catalogue import Rule, catalogue
from hlofuse.trace import Event
from .model import (
    BlockingRule,
    Explanation,
    FusedGroup,
    FusedStep,
    HotKernel,
    PassStory,
    RecordCheck,
    Rewrite,
    SelectedKernel,
    Selection,
)


def explain(
    replay: Compilation,
    *,
    what_if: Sequence[str] = (),
    costs: Costs | None = None,
    record: RecordCheck | None = None,
    facts: Facts | None = None,
) -> Explanation:
    """Say what a replay means. `what_if` names overrides the replay was created with; `costs` come with it
    from `observed_replay`; so do `facts`, where they are known already."""
    facts = facts or Facts(replay, costs)
    stories = list(_counted_once([_story(p, facts) for p in replay.passes]))
    earlier, later = (
        list(_others(events, facts)) for events in (replay.fusion_input.events, replay.events_after_fusion)
    )
    target = TARGETS[replay.target]
    return Explanation(
        replay.before.name,
        replay.before.filename,
        replay.target,
        replay.device,
        target.title,
        replay.config.release.title,
        tuple(what_if),
        facts.totals_before,
        facts.totals_after,
        tuple(stories),
        blocking_rules(((s.name, s.refused) for s in stories), facts.rule),
        quoted_rules((*earlier, *stories, *later), facts),
        record,
        hot_kernels(facts),
        facts.kernels(),
        facts.account_after.loops,
        sum(bool(step.tied_with) for s in stories for g in s.fused for step in g.steps),
        earlier=tuple(earlier),
        later=tuple(later),
        counted=replay.counted,
    )


def _others(events: Iterable[Event], facts: Facts) -> Iterable[PassStory]:
    pages = {code for code, rule in catalogue().items() if rule.pass_name}
    rewrites = (e for e in events if e.event == "rewrite" and e.rule in pages)
    for name, own in grouped((e.pass_name, e) for e in rewrites).items():
        yield PassStory(name, True, (), (), _rewrites(own, facts), len(own))


def quoted_rules(stories: Iterable[PassStory], facts: Facts) -> dict[str, Rule]:
    codes: set[str | None] = set()
    for s in stories:
        codes.update(step.event.rule for g in s.fused for step in g.steps)
        codes.update(r.rule for r in s.refused)
        codes.update(r.event.rule for r in s.rewrites)
    return {code: facts.rule(code) for code in sorted(c for c in codes if c)}


def _story(result: PassResult, facts: Facts) -> PassStory:
    events = list(result.events)
    return PassStory(
        result.name,
        result.changed,
        _fused_groups(events, facts),
        refusals(events, facts),
        _rewrites(events, facts),
        len(events),
    )


def _rewrites(events: Iterable[Event], facts: Facts) -> tuple[Rewrite, ...]:
    found = []
    for e in events:
        if e.event == "rewrite":
            found.append(Rewrite(e, facts.place(e.removed[0]).source if e.removed else None))
    return tuple(found)


def _counted_once(stories: Sequence[PassStory]) -> Iterable[PassStory]:
    """A kernel that an earlier pass has made saves what it saves there; later passes add what they share."""
    seen: set[str] = set()
    for story in stories:
        groups = []
        for g in story.fused:
            if g.fusion.name in seen:
                shared = (s.event.figures.get("shared_bytes", 0) for s in g.steps)
                g = replace(g, bytes_saved=sum(b for b in shared if isinstance(b, int)))
            groups.append(g)
        seen.update(g.fusion.name for g in groups)
        yield replace(story, fused=tuple(groups))


def _fused_groups(events: Sequence[Event], facts: Facts) -> tuple[FusedGroup, ...]:
    steps: dict[str, list[FusedStep]] = {}
    kernel_of: dict[str, str] = {}
    consumers = Counter(e.producer for e in events if e.event == "fuse")
    for e in events:
        if e.event != "fuse" or e.fusion is None:
            continue
        final = facts.lineage.last_kernel(e.fusion)
        kernel_of.setdefault(final, e.computation)
        steps.setdefault(final, []).append(
            FusedStep(
                e,
                facts.place(e.producer or ""),
                facts.costs.fusion(e) if facts.costs is not None else None,
                facts.costs.tied_with(e) if facts.costs is not None else (),
                consumers[e.producer],
            )
        )
    copies: dict[str, int] = {}
    groups = [_group(final, taken, kernel_of[final], facts, copies) for final, taken in steps.items()]
    groups.sort(key=lambda g: (-(g.us_saved or 0.0), -g.bytes_saved, g.steps[0].event.step))
    return tuple(groups)


def _group(
    final: str,
    steps: list[FusedStep],
    final_kernel: str,
    facts: Facts,
    copies: dict[str, int],
) -> FusedGroup:
    """`copies` keeps how many kernels hold an operation: thousands may, where one is copied into all."""
    row, runs = facts.launched_as(final), facts.runs(final)
    saved = -row.cost.bytes_accessed * runs if row is not None else 0
    inside = [name for name in facts.lineage.members(final) if name in facts.before]
    for name in inside:
        alone = facts.account_before.by_name.get(name)
        if name in facts.after or alone is None:
            continue  # where it still runs on its own as well, nothing is saved
        if name not in copies:
            copies[name] = sum(k in facts.after for k in facts.lineage.kernels_of(name)) or 1
        saved += alone.cost.bytes_accessed * alone.runs // copies[name]
    kernel, us_saved = None, None
    if facts.costs is not None:
        savings = [s.us_saved for s in steps if s.us_saved is not None]
        us_saved = sum(savings) * runs if savings else None
        kernel = kernel_time_of(final, facts)
    return FusedGroup(
        facts.place(final), final_kernel, tuple(steps), saved, tuple(inside), kernel=kernel, us_saved=us_saved
    )


def kernel_time_of(name: str, facts: Facts) -> KernelTime | None:
    """The time of a kernel of the result, without its launch; None where XLA has no estimate."""
    row = facts.launched_as(name)
    instruction = facts.after.get(name) or (row.instruction if row is not None else None)
    if facts.costs is None or instruction is None:
        return None
    kernel = facts.costs.kernel(instruction)
    if kernel is not None and row is not None and row.is_floor and row.us is not None:
        kernel = replace(kernel, us_floor=row.us - row.launch_us)
    return kernel


def blocking_rules_of(facts: Facts) -> tuple[BlockingRule, ...]:
    """The rules that keep kernels of a replay apart, as `blocking_rules`."""
    refused = ((p.name, refusals(p.events, facts, between_only=True)) for p in facts.replay.passes)
    return blocking_rules(refused, facts.rule)


def blocking_rules(
    refused: Iterable[tuple[str, Iterable[Refusal]]], rule: Callable[[str | None], Rule]
) -> tuple[BlockingRule, ...]:
    """Refusals of each pass, those between kernels, by rule: most time at stake first, then most bytes. A
    pair refused by several passes counts once, for the last of them; those that only give a kernel further
    results count where no other had something to say."""
    pairs = {}
    for name, found_by_pass in refused:
        for r in found_by_pass:
            if r.between_kernels and not (name in FURTHER_RESULTS and (r.kernel, r.consumer) in pairs):
                pairs[r.kernel, r.consumer] = r
    found = []
    for code, own in grouped((r.rule, r) for r in pairs.values()).items():
        own.sort(key=lambda r: (-(r.us_at_stake or 0.0), -r.bytes_between, r.steps[0]))
        found.append(BlockingRule(rule(code), tuple(own)))
    found.sort(key=lambda o: (-(o.us_at_stake or 0.0), -o.bytes_between, -o.edges, o.rule.code))
    return tuple(found)


def hot_kernels(facts: Facts, only: Container[str] | None = None) -> tuple[HotKernel, ...]:
    """The launches, grouped as in `grouped_kernels`; `only` are names at fusion."""
    rows = (r for r in facts.account_after.rows if r.runs or r.measured_us)
    places = ((row, facts.final_place(row.instruction)) for row in rows)
    chosen = [(row, place) for row, place in places if only is None or place.name in only]
    times = facts.account_after.times
    return grouped_kernels(chosen, facts.costs.kernel if facts.costs is not None else None, times)


def grouped_kernels(
    rows: Iterable[tuple[Launched, Place]],
    time_of: Callable[[Instruction], KernelTime | None] | None,
    cpu: CpuTimes | None = None,
) -> tuple[HotKernel, ...]:
    """Kernels alike in line, kind, shapes and costs: longest measured, then estimated, then by bytes."""
    groups: dict[object, list[HotKernel]] = {}
    for row, place in rows:
        _, expanded = expansion_of(row.instruction)
        kernel = time_of(row.instruction) if time_of is not None and not row.is_floor else None
        moved = row.cost.bytes_accessed * row.runs
        one = HotKernel(
            place,
            kernel,
            row.total_us or 0.0,
            moved,
            row.is_floor,
            iterations=row.runs or 1,
            measured_us=row.measured_us,
            is_collective=row.kind == "collective",
            per_iteration=row.per_iteration,
            in_branch=row.in_branch,
            estimate=cpu.kind_text(row.instruction) if cpu else f"loop for {expanded}" if expanded else "",
            has_time=cpu is None or (row.us is not None and not row.is_floor),
            open_end=open_end(row),
            is_open=row.is_open,
        )
        stem = place.label.rstrip(".0123456789")
        operands = tuple(str(o.shape) for o in row.instruction.operands)
        # Of measured times a factor of two is no noise.
        time = round(math.log2(row.measured_us)) if row.measured_us else row.us
        key = (stem, place.source, place.shape, operands, row.cost, time, one.iterations, row.in_branch)
        groups.setdefault(key, []).append(one)
    found = []
    for similar in groups.values():
        first = max(similar, key=lambda k: (k.measured_us or 0.0, k.us, k.bytes_accessed))
        measured = [k.measured_us for k in similar if k.measured_us is not None]
        us, moved = sum(k.us for k in similar), sum(k.bytes_accessed for k in similar)
        first = replace(first, us=us, bytes_accessed=moved, measured_us=sum(measured) if measured else None)
        found.append(replace(first, count=len(similar), is_floor=any(k.is_floor for k in similar)))
    return tuple(
        sorted(
            found,
            key=lambda k: (-(k.measured_us or 0.0), not k.is_open, -k.us, -k.bytes_accessed, k.place.name),
        )
    )


def group_fused(groups: Sequence[FusedGroup]) -> list[FusedGroup]:
    """One group for all that took in the same operations by the same rules; `equivalents` are the others."""
    found = [
        replace(first, equivalents=tuple(g.fusion.name for g in others)) if others else first
        for first, *others in grouped((_decisions(g), g) for g in groups).values()
    ]

    def largest_saving_first(g: FusedGroup) -> tuple[float, int, int]:
        copies = 1 + len(g.equivalents)
        return -(g.us_saved or 0.0) * copies, -g.bytes_saved * copies, g.steps[0].event.step

    return sorted(found, key=largest_saving_first)


def _decisions(g: FusedGroup) -> object:
    taken = sorted((s.producer.opcode, s.producer.shape, s.event.rule or "") for s in g.steps)
    return g.fusion.shape, g.fusion.source, tuple(taken)


def group_refusals(refusals: Sequence[Refusal]) -> list[list[Refusal]]:
    """Refusals of like producers at the same source line by the same rule, together; most bytes first."""
    found = grouped(
        ((r.rule, r.producer.opcode, r.producer.shape, r.producer.source, r.between_kernels), r)
        for r in refusals
    )
    return sorted(
        found.values(),
        key=lambda refused: (-(us_at_stake(refused) or 0.0), -sum(r.bytes_between for r in refused)),
    )


def record_check(observed: Observed) -> RecordCheck | None:
    """The agreement of the two; None without a log."""
    record, log = observed.replay.input.record, observed.replay.recorded_order
    if record is None or log is None:
        return None
    log.finish()
    return RecordCheck(record.file, log.total, log.agreed, tuple(log.disagreements))


def selected(e: Explanation, name: str, names: Names) -> Explanation:
    """The explanation of the kernels that `name` means, with the module's totals; HlofuseError for none."""
    facts, meant = names.facts, names.launched(name)
    kernels = tuple(
        SelectedKernel(k, kernel_time_of(k.place.name, facts), operations, facts.created_by(k.place.name))
        for k in e.kernels
        if (operations := meant.get(k.place.name)) is not None
    )
    stories = tuple(_about(p, set(meant), names) for p in e.passes)
    earlier, later = (
        tuple(p for p in (_about(p, set(meant), names) for p in around) if p.rewrites)
        for around in (e.earlier, e.later)
    )
    return replace(
        e,
        kernels=tuple(k.kernel for k in kernels),
        passes=stories,
        blocking_rules=blocking_rules(((p.name, p.refused) for p in stories), facts.rule),
        hot_kernels=hot_kernels(facts, meant),
        rules=quoted_rules((*earlier, *stories, *later), facts),
        earlier=earlier,
        later=later,
        selected=Selection(name.strip(), kernels),
    )


def _about(story: PassStory, kernels: set[str], names: Names) -> PassStory:
    final = names.facts.lineage.last_kernel
    return replace(
        story,
        fused=tuple(g for g in story.fused if g.fusion.name in kernels),
        refused=tuple(r for r in story.refused if not kernels.isdisjoint((r.kernel, r.consumer))),
        rewrites=tuple(
            r
            for r in story.rewrites
            if not kernels.isdisjoint(map(final, (*r.event.removed, *r.event.added)))
        ),
    )
