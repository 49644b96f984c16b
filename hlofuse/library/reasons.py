"""The answer of `why`, also under names of XLA's own run: a file without what `explain` imports."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hlofuse.format import printable
from hlofuse.format.terminal import Page, print_command
from hlofuse.inputs import load
from hlofuse.inputs.companions import companions_of
from hlofuse.inputs.dump_directory import corpus_file, dumped_module
from hlofuse.ir import HlofuseError, Json, replace
from hlofuse.reports.common.names import launched_in
from hlofuse.reports.fused import tpu
from hlofuse.reports.why import PairAnswer, Story
from hlofuse.reports.why.model import SCHEMA as WHY
from hlofuse.reports.why.model import answers_json
from hlofuse.reports.why.story import Answer as Found
from hlofuse.reports.why.story import answers, confirmed, in_the_input
from hlofuse.reports.why.text import print_answers
from .answer import Answer
from .heads import head_of, rests_on
from .loading import with_change
from .program import Program
from .questions import Why


def why(report: Program, options: Why) -> Answer[Any]:
    """The answer of `why`, confirmed by replays where a knob decides; for a TPU, learnt reasons."""
    queries = (options.name,) if options.other is None else (options.name, options.other)
    try:
        observed = report.observed
    except HlofuseError:
        if (learnt := tpu_reasons(report, [*filter(None, queries)])) is None:
            raise
        return learnt
    found = _by_own_names(report, queries) or answers(
        observed.replay, *queries, unoptimized=report.unoptimized, facts=report.facts
    )
    replayed = partial(with_change, report.options, observed)
    found = confirmed(found, observed, replayed, report.facts)
    found.sort(key=lambda a: -(a.us or 0.0) * a.runs if isinstance(a, Story) else -a.bytes_between)
    arguments = report.options.input_arguments

    def draw(console: Page, details: bool = False) -> None:
        total = report.totals.kernels
        print_answers(found, queries, console, input_arguments=arguments, details=details, total=total)
        if not details:
            console.print()
            print_command(console, 0, "why", *arguments, *queries, "--details")

    return Answer(
        " and ".join(queries),
        lambda: found,
        json=lambda data: answers_json(data, queries),
        body=draw,
        rows_of=_decisions,
        limit=20,
        **rests_on(report),
    )


def _decisions(document: Json) -> Iterable[Json]:
    for answer in document.get("answers", [document]):
        for part in ("decisions", "as_producer", "as_consumer", "rewrites"):
            yield from answer.get(part, ())


def _by_own_names(report: Program, queries: Sequence[str]) -> list[Found]:
    """The answer by names of the input, for names of XLA's own run that mean nothing under other settings. A
    note says so. Empty where the names have an answer as they are."""
    observed = report.observed
    if observed.xla is None:
        return []
    try:
        if _has_answer(answers(observed.replay, *queries)):
            return []
    except HlofuseError:
        pass
    try:
        names = observed.xla.replay.names_at_fusion
        own = [names.get(n.strip().lstrip("%"), n) for n in queries]
        translated = in_the_input(own, observed.xla.replay)
        found = answers(observed.replay, *translated, costs=observed.costs)
    except HlofuseError:
        return []
    if not _has_answer(found):
        return []
    shown = printable(" and ".join(translated))
    report.options.listener.note(f"these settings change the numbers in fusion names; explaining {shown}")
    return found


def _has_answer(found: Sequence[Found]) -> bool:
    return any(not isinstance(a, PairAnswer) or a.outcome != "apart" for a in found)


def tpu_reasons(report: Program, names: Sequence[str]) -> Answer[Any] | None:
    """Kernels of a TPU by name, or pairs of two, with learnt reasons; None for another input."""
    final = final_of_tpu(report) or report
    if (pair := tpu_pair(report, names, final)) is None:
        return None

    def draw(console: Page, details: bool = False) -> None:
        if details or not draw_kernels(final, names, pair, console):
            tpu.print_tpu(pair, console)

    return Answer(
        " and ".join(names),
        lambda: pair,
        json=lambda data: {"schema": WHY, "about": "tpu", "asked": [*names], **tpu.pair_json(data)},
        body=draw,
        rows_of="pairs",
        limit=20,
        entries_of=lambda data: data.edges,
        heads=[head_of(report.loaded, replayed=False)],
    )


def _final_names(final: Program, name: str) -> set[str]:
    if final.is_fused:
        with suppress(HlofuseError):
            return launched_in(final.account_as_it_is.module, name)
    return set()


def draw_kernels(
    final: Program,
    queries: Sequence[str],
    pair: tpu.TpuPair | None,
    console: Page,
) -> bool:
    """Print the kernels of a TPU's final module that one name means; False where it has none."""
    names = _final_names(final, queries[0]) if len(queries) == 1 else set()
    if names:
        account = final.account_as_it_is
        found, total = tpu.kernel_stories(account, names, pair), account.totals.kernels
        print_answers(found, queries, console, details=False, total=total)
    return bool(names)


def tpu_pair(report: Program, names: Sequence[str], final: Program) -> tpu.TpuPair | None:
    """XLA:TPU's fusions in the input's dumps, or its pairs of these names, maybe of `final`; else None."""
    options = report.options
    is_file = options.input != "-" and options.given is None and report.identity.backend.value == "tpu"
    files = tpu.tpu_files(Path(options.input), options.module) if is_file else None
    if files is None:
        return None
    with options.listener.activity("comparing"):
        before = load(files[0])
        pair = tpu.compare_tpu(before, load(files[1]))
    if not names:
        return pair

    def meant(name: str) -> set[str]:
        try:
            return launched_in(before, name)
        except HlofuseError:
            if not final.is_fused:
                raise
        return launched_in(final.account_as_it_is.module, name)

    named = [*map(meant, names)]
    edges = tpu.edges_of(named, pair.edges)
    if not edges and final.is_fused:
        edges = tpu.edges_of(named, tpu.final_edges(final.account_as_it_is.module))
    return replace(pair, edges=edges, changes=(), changed=0, queries=names)


_ProgramT = TypeVar("_ProgramT", bound=Program)


def final_of_tpu(report: _ProgramT) -> _ProgramT | None:
    """The program of XLA:TPU's final module next to an earlier one; None for other inputs."""
    options, companions = report.options, companions_of(report.module)
    is_tpu = bool(companions.tpu[0]) or report.identity.backend.value == "tpu"
    is_default = options.target is None and options.given is None and not options.changes_xla
    if not is_tpu or not is_default or report.is_fused or companions.path is None:
        return None
    dumped = dumped_module(companions.path)
    files = [corpus_file(companions.folder, name) for name in ("after_optimizations", "after")]
    found = dumped.finished if dumped is not None else next(filter(None, files), None)
    if found is None:
        return None
    options.listener.note(f"XLA:TPU's passes are not replayed: this is its final module, {found.name}")
    return type(report)(replace(options, input=str(found), module=None))
