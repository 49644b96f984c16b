"""From inputs to measured modules: what `hlofuse check` and `hlofuse.testing` hold against a baseline."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from hlofuse.account import Account
from hlofuse.account.replaying import running
from hlofuse.cost.cpu.device import assumed_cpu
from hlofuse.cost.gpu.device import device_names
from hlofuse.format import plural
from hlofuse.format.escape import markdown as as_markdown
from hlofuse.format.terminal import Page
from hlofuse.inputs.choose_target import NO_TARGET
from hlofuse.inputs.profile import NotProfiled
from hlofuse.ir import HlofuseError, replace
from hlofuse.pipelines import TARGETS
from hlofuse.reports.check import Baseline, Check, Measured, Profile, check_modules, read_baseline
from hlofuse.reports.check.baseline import Budget, updated_files
from hlofuse.reports.check.check import profile_of_replay, profile_of_result, refused_edges
from hlofuse.reports.check.ci import check_markdown
from hlofuse.reports.check.model import check_json
from hlofuse.reports.check.text import print_check
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.head import head_lines, print_heads
from hlofuse.reports.verdict.verdict import verdict
from . import questions
from .answer import Answer
from .heads import head_of
from .loading import Defaults, at_fusion_input, each_module, has_several, read
from .naming import unoptimized_of
from .options import ReplayOptions
from .program import Program


def measure_all(
    requests: Sequence[ReplayOptions],
    root: Path,
    baseline: Mapping[str, Profile] | None = None,
) -> list[Measured]:
    """Every module of every input. HlofuseError for the first that cannot be read or replayed. `baseline` are
    the profiles that they will be held against: those tell the device where nothing else does."""
    listener = replace(requests[0].listener, note=cache(requests[0].listener.note))  # of many modules once
    requests = [replace(r, listener=listener) for r in requests]
    found = []
    absent = []
    for one, name in (pair for r in requests for pair in each_module(r)):
        try:
            found.append(_one(one, name, root, baseline or {}))
        except NotProfiled as error:
            absent.append(error)
    if absent and not found:
        raise absent[0]
    if absent:
        listener.note(f"{plural(len(absent), 'module')} did not run in the profile: not checked")
    seen: dict[str, int] = {}
    for n, m in enumerate(found):  # of a function compiled several times: `jit_f`, `jit_f (2)`, …
        name = m.profile.name
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            found[n] = replace(m, profile=replace(m.profile, name=f"{name} ({seen[name]})"))
    return found


def _defaults(profile: Profile | None) -> Defaults | None:
    if profile is None or profile.target not in TARGETS or profile.device not in (None, *device_names()):
        return None
    return Defaults(profile.target, profile.device, "the baseline records it")


def on_cpu_of(baseline: Mapping[str, Profile]) -> AbstractContextManager[None]:
    """Within it, times are estimated for the CPU that a baseline's are for, unless `HLOFUSE_CPU` is set."""
    return assumed_cpu(next((p.cpu for p in baseline.values() if p.cpu is not None), ""))


def _one(
    request: ReplayOptions,
    name: str | None,
    root: Path,
    baseline: Mapping[str, Profile],
) -> Measured:
    loaded = read(
        request, any_stage=True, otherwise=lambda module: _defaults(baseline.get(name or module.name))
    )
    module, target = loaded.module, loaded.target
    file = module.filename or request.input
    replayed = request.takes_any_stage
    stage = loaded.identity.shown
    if not replayed and stage.is_fused and (not stage.foreign_to(target) or stage.backend in NO_TARGET):
        loaded.note_device()
        head = head_of(loaded, replayed=False)
        runs = running(module, head.identity, loaded.device)[0] if head is not None else Account(module)
        profile = profile_of_result(name or module.name, runs, target, loaded.device, root)
        return Measured(profile, file, list, head=head)
    loaded = at_fusion_input(request, loaded)
    assert loaded.config is not None
    # Nothing is held against XLA's own replay here.
    measured = None if loaded.changes else loaded.profile
    own = replace(loaded, config=replace(loaded.config, xla=None), profile=measured)
    observed = own.observe(one_of_many=True)
    facts = Facts(observed.replay, observed.costs)
    profile = profile_of_replay(name or module.name, facts, root)
    return Measured(
        profile,
        file,
        lambda: refused_edges(facts, root),
        loaded.changes,
        loaded.note,
        head_of(loaded),
        lambda: verdict(observed, facts, unoptimized=lambda: unoptimized_of(observed.replay)),
    )


def check(reports: Sequence[Program], options: questions.Check) -> Answer[Check]:
    return checked([report.options for report in reports], options)[0]


def checked(
    requests: Sequence[ReplayOptions],
    options: questions.Check,
    update: bool = False,
) -> tuple[Answer[Check], dict[Path, str]]:
    """The broken limits, and the files of the baseline to write with `update`. HlofuseError for an unreadable
    baseline, and where there is nothing to check against."""
    budget = Budget.of(options.max_kernels, options.max_bytes, options.max_time, options.max_memory)
    baseline = Path(options.baseline) if options.baseline is not None else None
    if update and baseline is None:
        raise HlofuseError("--update needs --baseline FILE, the baseline to write")
    if baseline is None and budget.is_empty:
        raise HlofuseError(
            "nothing to check against; give --baseline, --max-kernels, --max-bytes, --max-time or"
            " --max-memory"
        )
    stored = Baseline()
    is_there = baseline is not None and (
        any(baseline.glob("*.toml")) if baseline.is_dir() else baseline.exists()
    )
    if baseline is not None and (is_there or not update):
        stored = read_baseline(baseline)
    with on_cpu_of(stored.profiles):
        measured = measure_all(requests, Path(options.root), stored.profiles)
        files = {}
        if update and baseline is not None:
            files = updated_files(baseline, [m.profile for m in measured])
            stored.profiles = {}
        found = check_modules(
            measured,
            budgets=[] if budget.is_empty else [budget],
            baseline=stored,
            baseline_name=str(baseline) if baseline is not None else None,
            all_there=any(has_several(r.input) and r.profile is None for r in requests)
            and requests[0].module is None,
            tolerance=options.tolerance / 100,
            strict=options.strict,
        )
    found = replace(found, updated=update)
    heads = [m.head for m in measured if m.head is not None]

    def markdown(check: Check) -> str:
        return "".join(f"{as_markdown(line)}\n\n" for line in head_lines(heads)) + check_markdown(check)

    def draw(console: Page) -> None:
        print_heads(heads, console)
        print_check(found, console)

    answer = check_answer("check", found, draw)
    return replace(answer, markdown=markdown, heads=heads), files


def check_answer(name: str, found: Check, draw: Callable[..., None]) -> Answer[Check]:
    """The broken limits, as an answer whose text `draw` prints."""
    return Answer(
        name,
        lambda: found,
        json=check_json,
        body=draw,
        rows_of=lambda document: [f for m in document["modules"] for f in m["findings"]] + document["others"],
        entries_of=lambda data: [f for m in data.modules for f in m.findings] + list(data.others),
        markdown=check_markdown,
        prints_heads=True,
    )
