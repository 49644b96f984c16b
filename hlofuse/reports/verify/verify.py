"""`verify`: the replay of a module compared with XLA's result, and corpora, in processes where that pays."""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import zip_longest
from math import isclose
from typing import Any

from hlofuse.analysis.kernels import is_small_call, kernels
from hlofuse.analysis.launches import Launch, launches
from hlofuse.compilation import (
    Compilation,
    CompilationInput,
    ModuleTexts,
    ReplayConfig,
    compile,
    replay_config,
)
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format import printable
from hlofuse.inputs import read_text
from hlofuse.inputs.choose_target import choose_target, requested_target
from hlofuse.inputs.companions import Companions, companions_of, compiled_with
from hlofuse.inputs.identity import identify
from hlofuse.inputs.ordered import replay_input
from hlofuse.inputs.stage import doubt, lowering_in_creation_order, stage_of
from hlofuse.ir import HlofuseError, Instruction, Module, OrderSource, Record, grouped, parse_module, replace
from hlofuse.ir.grouping import unmatched
from hlofuse.ir.opcodes import values
from hlofuse.matching.kernels import KernelKeys
from hlofuse.matching.key import Strictness
from hlofuse.passes.fusion.priority_fusion.observers import Disagreement, RecordedOrder
from hlofuse.pipelines import TARGETS, device_of
from hlofuse.pipelines.differences import groups
from hlofuse.pipelines.identity import Fact, Given, Identity
from hlofuse.pipelines.targets import Stage
from hlofuse.reports.common.head import Head
from hlofuse.trace import Event
from hlofuse.trace.priority_record import (
    FusionStep,
    IneligibleStep,
    PriorityRecord,
    PriorityStep,
    read_priority_record,
)
from .cases import Case, Until
from .model import (
    FinalVerdict,
    FirstDifference,
    KernelSide,
    PassVerdict,
    RecordVerdict,
    Report,
    Tried,
    Verdict,
    side_of,
)


class Job(Record):
    case: Case
    target: str = "cpu"
    device: str | None = None  # A name or file; None where the dump decides
    xla: str | None = None  # The release that is asked for; None where the dump decides
    option: str | None = None
    order: OrderSource | None = None  # The only source of ids and use-lists; None for the best there is
    ids: str | None = None
    ties_from_record: bool = False
    until: Until = "fusion"  # With `end` the final modules are compared
    flags: tuple[str, ...] = ()  # XLA flags in addition to those of the dump
    tried: str | None = None  # A release to replay as, of those that the dump leaves open


def _device(job: Job) -> str | DeviceDescription | None:
    if job.device is not None or not TARGETS[job.target].needs_device:
        return job.device
    found = Companions(job.case.before).recorded_device
    return found.device if found is not None else None


def _head(identity: Identity, verdict: Verdict, job: Job) -> Head:
    depends = TARGETS[job.target].depends_on_order
    return Head(identity, verdict.order if depends else None, verdict.record is not None)


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
        any(
            _close(s.us_fused, e.us_fused) and _close(s.us_unfused, e.us_unfused)
            for e in by_producer.get((s.producer, tuple(sorted(s.consumers))), ())
        )
        for s in priorities
    )
    xla_refusals = Counter((s.producer, s.reason) for s in record.steps if isinstance(s, IneligibleStep))
    our_refusals = Counter((e.producer or "", e.reason or "") for e in decisions if e.event == "ineligible")
    return RecordVerdict(
        in_order=ordered == actual,
        any_order=Counter(ordered) == Counter(actual),
        priorities=agreed,
        priorities_total=len(priorities),
        refusals=(xla_refusals & our_refusals).total(),
        refusals_total=xla_refusals.total(),
        difference=_first_fusion(record, fuses, decisions),
    )


def follow_record(recorded_order: RecordedOrder, record: PriorityRecord) -> RecordVerdict:
    """A replay that took XLA's choice among equals: the first entry that differs is a real difference."""
    recorded_order.finish()
    wrong = Counter(d.kind for d in recorded_order.disagreements)
    priorities = sum(isinstance(s, PriorityStep) for s in record.steps)
    refusals = sum(isinstance(s, IneligibleStep) for s in record.steps)
    order = wrong["choice"] + wrong["fusion"]
    return RecordVerdict(
        in_order=order == 0,
        any_order=order == 0,
        priorities=max(0, priorities - wrong["priority"]),
        priorities_total=priorities,
        refusals=max(0, refusals - wrong["refusal"]),
        refusals_total=refusals,
        difference=next(iter(recorded_order.disagreements), None),
        followed=True,
    )


def _first_fusion(record: PriorityRecord, fuses: list[Event], decisions: list[Event]) -> Disagreement | None:
    for number, (xla, our) in enumerate(zip_longest(record.fusions(), fuses)):
        if xla and our and (xla.producer, xla.consumer) == (our.producer, our.consumer):
            continue
        left = right = None
        if xla is not None:
            before = [s for s in record.steps[: record.steps.index(xla)] if isinstance(s, PriorityStep)]
            left = _into(xla, before)
        if our is not None:
            right = _into(our, [e for e in decisions if e.step < our.step and e.event == "priority"])
        return Disagreement("fusion", number, (xla or our).producer or "", left, right)
    return None


def _into(fusion: FusionStep | Event, estimates: Sequence[PriorityStep | Event]) -> str:
    """The two that were fused, with the figures of the last estimate of the producer before."""
    text = f"{fusion.producer} into {fusion.consumer}"
    last = next((e for e in reversed(estimates) if e.producer == fusion.producer), None)
    return text if last is None else f"{text} ({last.us_fused:g} µs fused, {last.us_unfused:g} unfused)"


def _close(a: float, b: float | None) -> bool:
    return b is not None and isclose(a, b, rel_tol=_RELATIVE_TOLERANCE)


def verify_module(
    input: CompilationInput,
    after: Module,
    config: ReplayConfig,
    *,
    name: str | None = None,
    after_passes: Sequence[tuple[str, Module]] | None = None,
    recorded: Sequence[str] | None = None,
    complete: bool = True,
    record: PriorityRecord | None = None,
) -> Verdict:
    """Replay a module and compare with XLA's `after`, and with its modules after single passes.

    `after_passes` holds (pass, module) for the passes that changed something, in order, as XLA dumps them:
    for none of them to have done so it is empty. None compares the end alone. `recorded` names the passes
    whose dumps are among them if they left one, where not all were kept; `after` is then the module after the
    last of those. Unless `complete`, a pass without a dump may have changed the module, too: only the modules
    that are there are compared. `record` are XLA's own steps of PriorityFusion; where the input has them,
    too, its choice among equal priorities is taken, so that a difference is no echo of unknown ids."""
    before = input.module
    start = time.perf_counter()
    observers = [ModuleTexts()] if after_passes is not None else []
    actual = compile(input, config, observers)
    seconds = time.perf_counter() - start
    compare = _Comparison()
    passes, difference, end, not_dumped = _compare_passes(
        actual, before, after, after_passes, recorded, complete, compare
    )
    exact, partition = compare.equal(end, after)
    if difference is None and not exact:
        difference = compare.difference(end, after, None, actual)
    named, total = compare.fusion_names(before, end, after)
    other_device = record is not None and not record.is_of(config.device)
    return Verdict(
        name or before.name,
        exact,
        partition,
        tuple(passes),
        named,
        total,
        len(kernels(after)),
        difference,
        None,
        seconds,
        _record_verdict(record, actual),
        _note(before, after, actual, other_device) if not exact else None,
        not_dumped,
        actual.order_source,
        reordered=compare.reordered(end, after) if partition and not exact else 0,
    )


def _note(before: Module, after: Module, actual: Compilation, other_device: bool) -> str | None:
    """Doubts about the two modules, which may explain the whole difference; None without one."""
    target = actual.config.target
    found = [doubt(before, target)]
    if before.name != after.name:
        found.append(
            f"BEFORE is {printable(before.name)}, AFTER is {printable(after.name)}: different programs."
        )
    if after.is_scheduled:
        found.append("AFTER is the module after all optimizations, changed by later passes.")
    elif not stage_of(after, target).is_fused and any(e.event == "fuse" for e in actual.events):
        found.append("AFTER has no fusions.")
    if other_device:
        found.append("XLA's fusion log next to it is for another device.")
    return " ".join(filter(None, found)) or None


def _record_verdict(record: PriorityRecord | None, actual: Compilation) -> RecordVerdict | None:
    if record is None:
        return None
    followed = actual.recorded_order
    return follow_record(followed, record) if followed is not None else compare_record(record, actual.events)


class _Comparison:
    """Comparison of modules with and without the order of results."""

    def __init__(self) -> None:
        self._strict = KernelKeys()
        self._loose = KernelKeys(output_order=False)

    def equal(self, actual: Module, xla: Module) -> tuple[bool, bool]:
        """Whether they are the same, and the same except the order of results."""
        if self._strict.module(actual).key == self._strict.module(xla).key:
            return True, True
        return False, self._loose.module(actual).key == self._loose.module(xla).key

    def reordered(self, actual: Module, xla: Module) -> int:
        """XLA's kernels that `actual`, which has the same up to the order of results, has in another one."""
        own, expected = (Counter(map(self._strict.kernel, kernels(m))) for m in (actual, xla))
        return (expected - own).total()

    def difference(
        self,
        actual: Module,
        xla: Module,
        pass_name: str | None,
        run: Compilation,
    ) -> FirstDifference:
        """The first kernel of either side that the other lacks."""
        a, b = self._strict.module(actual), self._strict.module(xla)
        own, expected = a.first_missing_in(b), b.first_missing_in(a)
        decision = None
        for e in reversed(run.events):
            if own is not None and e.event == "fuse" and e.fusion == own.name:
                decision = f"{e.pass_name} step {e.step}: {e.producer} into {e.consumer}, {e.rule}"
                break
        return FirstDifference(pass_name, side_of(own), side_of(expected), decision)

    def fusion_names(self, before: Module, actual: Module, xla: Module) -> tuple[int, int]:
        """The number of XLA's new fusions with an equal one of the same name, and of all new ones."""
        old = {i.name for i in before.instructions() if i.is_fusion}
        own = self._strict.module(actual).names()
        named = total = 0
        for key, names in self._strict.module(xla).names().items():
            created = {n for n in names if n not in old}
            total += len(created)
            named += len(created & set(own.get(key, ())))
        return named, total


_LACKS_FIGURES = values("horizontal_input_fusion")
"""Passes that report a change of the last computation only: without a dump nothing is known."""
_UNREPORTED = "unreported"  # Corpus name of the module after such a pass, from the start of the next pipeline


def _compare_passes(
    actual: Compilation,
    before: Module,
    after: Module,
    after_passes: Sequence[tuple[str, Module]] | None,
    recorded: Sequence[str] | None,
    complete: bool,
    compare: _Comparison,
) -> tuple[list[PassVerdict], FirstDifference | None, Module, tuple[str, ...]]:
    """Pass by pass: where XLA has no dump, the pass left the module as it was, or unless `complete` may have
    changed it. Also gives the replayed module at `after`, and passes that changed it without a dump."""
    verdicts = []
    difference = None
    end, xla = actual.after, before
    left = list(after_passes or ())
    not_dumped: dict[str, None] = {}
    runs: Counter[str] = Counter()
    unsaid = False
    for done in actual.passes if after_passes is not None else ():
        if recorded is not None and done.name not in recorded:
            continue
        runs[done.name] += 1
        names = {done.name, f"{done.name}-{runs[done.name]}"}
        if done.name in _LACKS_FIGURES:
            names.add(_UNREPORTED)
            unsaid = done.changed
        dumped, previous = bool(left) and left[0][0] in names, xla
        if dumped:
            xla, unsaid = left.pop(0)[1], False
        elif not complete:
            not_dumped |= {done.name: None} if done.changed else {}
        if unsaid or not (dumped or complete):
            continue  # XLA's module is not known before the next dump
        own = parse_module(done.module_text or "", f"<replayed module after {done.name}>")
        exact, partition = compare.equal(own, xla)
        # A narrow pattern dumps passes that changed nothing, too.
        changed = dumped if complete else not compare.equal(previous, xla)[0]
        verdicts.append(PassVerdict(done.name, exact, partition, done.changed, changed))
        if not exact and difference is None:
            difference = compare.difference(own, xla, done.name, actual)
        if recorded is not None or (not complete and xla is after):
            end = own
    return verdicts, difference, end, tuple(not_dumped)


def run(job: Job) -> Verdict:
    """The verdict; what cannot be read or replayed becomes a verdict with an error."""
    try:
        before, after, passes = job.case.load()
        stage = stage_of(before, job.target, Given(flags=job.flags))
        if stage.foreign_to(job.target):
            backend = str(stage.backend).upper()
            raise HlofuseError(f"the module is for {backend}, not for target {job.target} ({stage.evidence})")
        record = None
        if job.case.record is not None and TARGETS[job.target].has_history:
            record = read_priority_record(read_text(job.case.record, as_module=False))
        device = _device(job)
        on = device_of(job.target, device)[0]
        chosen = choose_target(companions_of(before), device=job.device is not None, read=before)
        if chosen.name != job.target:
            chosen = requested_target(job.target)
        fact = Fact(on.name, "directory", "a file next to the module") if on is not None else None
        if fact is not None and job.device is not None:
            fact = Fact(fact.value, "asked", "given by --device")
        found = identify(before, chosen, fact, Given(flags=job.flags, release=job.xla))
        identity = replace(found, replayed=job.tried) if job.tried is not None else found
        flags = compiled_with(before, job.flags)
        config = replay_config(job.target, device, xla=identity.replayed, option=job.option, xla_flags=flags)
        if stage.name is Stage.BEFORE and job.order is None and job.ids is None:
            input = lowering_in_creation_order(before, config).fusion_input
        else:
            ordered = replay_input(before, config, order=job.order, ids_file=job.ids)
            input = CompilationInput(ordered.module, ordered.ids)
        if job.until == "end":
            verdict = verify_final(input, after, config, job.case.name)
            return replace(verdict, head=_head(identity, verdict, job))
        verdict = verify_module(
            replace(input, record=record) if job.ties_from_record else input,
            after,
            config,
            name=job.case.name,
            after_passes=passes,
            recorded=job.case.recorded,
            complete=job.case.complete,
            record=record,
        )
        verdict = replace(verdict, head=_head(identity, verdict, job))
        if job.case.doubt is None or (verdict.exact and all(p.exact for p in verdict.passes)):
            return verdict
        return replace(verdict, note=" ".join(filter(None, (job.case.doubt, verdict.note))))
    except HlofuseError as e:
        error = str(e)
    except Exception as e:  # one module's trouble is not the others'
        error = f"internal error: {type(e).__name__}: {str(e)[:200]}"
    return Verdict(job.case.name, False, False, (), 0, 0, 0, None, error, 0.0)


def verify(
    cases: Sequence[Case],
    *,
    target: str = "cpu",
    jobs: int = 1,
    skipped: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda done, of: None,
    **how: Any,
) -> Report:
    """Compare our replay with XLA's result for every case (see `find_cases`); `how` are fields of `Job`.
    Where the dumps leave their release open, modules that differ are replayed as the others, too, and the
    report is that of the best. A case that cannot be read or replayed becomes an error; the rest goes on."""
    work = [Job(case, target, **how) for case in cases]
    run_all = partial(_run_all, processes=jobs, progress=progress)
    verdicts, tried = with_best_release(work, run_all(work), run_all)
    return Report(target, tuple(verdicts), tuple(skipped), tried)


def _run_all(work: Sequence[Job], processes: int, progress: Callable[[int, int], None]) -> list[Verdict]:
    verdicts = {}
    processes = min(processes, len(work))
    if processes <= 1:
        for n, job in enumerate(work):
            verdicts[n] = run(job)
            progress(n + 1, len(work))
    else:
        with ProcessPoolExecutor(processes) as pool:
            numbers = {pool.submit(run, job): n for n, job in enumerate(work)}
            for done, future in enumerate(as_completed(numbers), 1):
                verdicts[numbers[future]] = future.result()
                progress(done, len(work))
    return [verdicts[n] for n in range(len(work))]


Runner = Callable[[Sequence[Job]], list[Verdict]]
_Group = tuple[str, ...]


def with_best_release(
    work: Sequence[Job], verdicts: list[Verdict], run_all: Runner
) -> tuple[list[Verdict], tuple[Tried, ...]]:
    """The verdicts as the release that agrees with most modules, and all that were tried, the best first.
    Only modules that differ are replayed as the others; the rest as the best of those."""
    open_ones = [n for n, v in enumerate(verdicts) if v.head is not None and len(_releases(v)) > 1]
    if all(v.agrees for v in verdicts) or not open_ones or TARGETS[work[0].target].release:
        return verdicts, ()
    left = frozenset.intersection(*(frozenset(_releases(verdicts[n])) for n in open_ones))
    candidates = [r for r in _releases(verdicts[open_ones[0]]) if r in left]
    trial = _Trial(work, verdicts, open_ones, groups(work[0].target, candidates), run_all)
    return trial.best()


def _releases(verdict: Verdict) -> tuple[str, ...]:
    return verdict.head.identity.releases if verdict.head is not None else ()


class _Trial:
    """Every verdict that there is, by module and group of releases."""

    def __init__(
        self,
        work: Sequence[Job],
        verdicts: list[Verdict],
        open_ones: list[int],
        candidates: list[_Group],
        run_all: Runner,
    ) -> None:
        self._work, self._first, self._open, self._groups = work, verdicts, open_ones, candidates
        self._run_all = run_all
        self._comparable = [n for n in open_ones if verdicts[n].error is None]
        self._differing = [n for n in self._comparable if not verdicts[n].agrees]
        self._found: dict[tuple[int, _Group], Verdict] = {}
        for n in open_ones:
            group = self._first_group(n)
            if group is not None:
                self._found[n, group] = verdicts[n]

    def best(self) -> tuple[list[Verdict], tuple[Tried, ...]]:
        if len(self._groups) < 2 or not self._differing:
            return self._first, ()
        self._replay([(n, group) for group in self._groups for n in self._differing])
        best = max(self._groups, key=self._rank)
        while not self._tried(best).complete:  # until no other can be better
            self._replay([(n, best) for n in self._comparable])
            best = max(self._groups, key=self._rank)
        verdicts = list(self._first)
        for n in self._open:
            verdicts[n] = self._found.get((n, best), verdicts[n])
        rest = sorted((g for g in self._groups if g != best), key=self._rank, reverse=True)
        return verdicts, tuple(self._tried(group) for group in (best, *rest))

    def _first_group(self, n: int) -> _Group | None:
        head = self._first[n].head
        assert head is not None
        return next((g for g in self._groups if head.identity.replayed in g), None)

    def _replay(self, wanted: list[tuple[int, _Group]]) -> None:
        missing = [key for key in wanted if key not in self._found]
        jobs = [replace(self._work[n], tried=group[-1]) for n, group in missing]
        self._found.update(zip(missing, self._run_all(jobs) if jobs else [], strict=True))

    def _rank(self, group: _Group) -> tuple[int, int, int, int, bool, bool, int]:
        """Modules that agree as far as is known, then XLA's record for those that differed at first."""
        found = [self._found.get((n, group)) for n in self._comparable]
        tried = [v for n in self._differing if (v := self._found.get((n, group))) is not None]
        records = [v.record for v in tried if v.record is not None]
        replayed = self._tried(group)
        return (
            replayed.exact,
            sum(v is None or v.agrees for v in found),
            sum(r.priorities for r in records),
            sum(r.refusals for r in records),
            any(self._first_group(n) == group for n in self._open),
            replayed.complete,
            self._groups.index(group),
        )

    def _tried(self, group: _Group) -> Tried:
        found = [self._found.get((n, group)) for n in self._comparable]
        exact = sum(v is None or v.exact for v in found)
        return Tried(group, exact, len(found), None not in found)


def verify_final(
    input: CompilationInput,
    final: Module,
    config: ReplayConfig,
    name: str,
) -> Verdict:
    """Replay a module up to what is launched and compare with `final`, XLA's module after all passes."""
    start = time.perf_counter()
    target = config.target
    actual = compile(input, config)
    end = actual.span(Stage.SCHEDULED)
    seconds = time.perf_counter() - start
    found = compare_final(end.module, final, TARGETS[target].backend)
    difference = None
    if found.only_xla or found.only_actual:
        first = (*found.only_actual, None)[0], (*found.only_xla, None)[0]
        difference = FirstDifference(None, *first)
    notes = [doubt(input.module, target)] if not found.agrees else []
    if not found.agrees and end.not_repeated:
        notes.append(f"Not replayed: {', '.join(end.not_repeated)}.")
    if not found.agrees and not final.is_scheduled:
        notes.append("AFTER is not the module after all optimizations.")
    return Verdict(
        name,
        found.agrees,
        found.agrees,
        (),
        found.named,
        found.kernels,
        found.kernels,
        difference,
        None,
        seconds,
        note=" ".join(filter(None, notes)) or None,
        order=actual.order_source,
        final=found,
    )


def compare_final(actual: Module, xla: Module, backend: str) -> FinalVerdict:
    """Compare what the replayed final module launches with what XLA's does."""
    own, expected = launches(actual, backend), launches(xla, backend)
    own_names, expected_names = _names(own), _names(expected)
    keys = KernelKeys(Strictness.COMPUTED)
    own_keyed, expected_keyed = _keyed(own, keys), _keyed(expected, keys)
    own_copies, expected_copies = _copies(own), _copies(expected)
    return FinalVerdict(
        named=(own_names & expected_names).total(),
        kernels=expected_names.total(),
        same_names=own_names == expected_names,
        same_kernels=_counted(own_keyed) == _counted(expected_keyed),
        same_copies=_counted(own_copies) == _counted(expected_copies),
        copies=len(expected_copies),
        copies_actual=len(own_copies),
        only_xla=_lacking(expected_keyed, own_keyed) + _lacking(expected_copies, own_copies),
        only_actual=_lacking(own_keyed, expected_keyed) + _lacking(own_copies, expected_copies),
        renamed=tuple(sorted((expected_names - own_names).elements())),
    )


_Launches = list[tuple[Instruction, Launch]]
_Keyed = list[tuple[Hashable, Instruction]]


def _names(found: _Launches) -> Counter[str]:
    """Names of kernels. A small loop counts by its computation: the number in the name of its call goes on
    from calls that were inlined before fusion, which the fusion input does not show."""
    kernels = (i for i, launch in found if launch.kind != "copy")
    return Counter(i.to_apply.name if is_small_call(i) else i.name for i in kernels)


def _keyed(found: _Launches, keys: KernelKeys) -> _Keyed:
    return [((launch.kind, keys.kernel(i)), i) for i, launch in found if launch.kind != "copy"]


def _copies(found: _Launches) -> _Keyed:
    return [(i.shape.key, i) for i, launch in found if launch.kind == "copy"]


def _counted(keyed: _Keyed) -> Counter[Hashable]:
    return Counter(key for key, _ in keyed)


def _lacking(keyed: _Keyed, other: _Keyed) -> tuple[KernelSide, ...]:
    return tuple(map(side_of, unmatched(keyed, _counted(other))))
