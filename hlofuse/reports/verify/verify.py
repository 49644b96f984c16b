"""`verify`: whole corpora, in several processes where that pays."""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any

from hlofuse.analysis.launches import Launch, launches
from hlofuse.compilation import CompilationInput, ReplayConfig, compile, replay_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.inputs import read_text
from hlofuse.inputs.choose_target import choose_target, requested_target
from hlofuse.inputs.companions import Companions, companions_of, compiled_with
from hlofuse.inputs.identity import identify
from hlofuse.inputs.ordered import replay_input
from hlofuse.inputs.stage import doubt, stage_of
from hlofuse.ir import HlofuseError, Record, replace
from hlofuse.ir.graph import Instruction, Module, OrderSource
from hlofuse.ir.grouping import unmatched
from hlofuse.matching.kernels import KernelKeys
from hlofuse.matching.key import Strictness
from hlofuse.pipelines import TARGETS, device_of
from hlofuse.pipelines.differences import groups
from hlofuse.pipelines.identity import Fact, Given, Identity
from hlofuse.pipelines.stage import Stage
from hlofuse.reports.common.head import Head
from hlofuse.trace.priority_record import read_priority_record
from .cases import Case, Until
from .compare import verify_module
from .model import FinalVerdict, FirstDifference, KernelSide, Report, Tried, Verdict, side_of


class Job(Record):
    case: Case
    target: str = "cpu"
    device: str | None = None  # A name or file; None where the dump decides
    xla: str | None = None  # The release that is asked for; None where the dump decides
    option: str | None = None
    order: OrderSource | None = None
    """The only source of ids and use-lists; None for the best one next to the module."""
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
    return Counter(i.name for i, launch in found if launch.kind != "copy")


def _keyed(found: _Launches, keys: KernelKeys) -> _Keyed:
    return [((launch.kind, keys.kernel(i)), i) for i, launch in found if launch.kind != "copy"]


def _copies(found: _Launches) -> _Keyed:
    return [(i.shape.key, i) for i, launch in found if launch.kind == "copy"]


def _counted(keyed: _Keyed) -> Counter[Hashable]:
    return Counter(key for key, _ in keyed)


def _lacking(keyed: _Keyed, other: _Keyed) -> tuple[KernelSide, ...]:
    return tuple(map(side_of, unmatched(keyed, _counted(other))))
