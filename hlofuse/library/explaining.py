"""What XLA fuses in a module, what stops the rest, and why it is so for one instruction or two."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.format.escape import command_line, printable
from hlofuse.format.units import plural
from hlofuse.inputs import load
from hlofuse.inputs.choose_target import NO_TARGET
from hlofuse.inputs.dump_directory import DumpDirectory
from hlofuse.inputs.dump_names import TPU_PIPELINES
from hlofuse.inputs.stage import StageError
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.answer import Answer
from hlofuse.library.heads import head_of, head_of_dump
from hlofuse.library.naming import final_names_of, has_own_result, resolver_of
from hlofuse.reports.common.names import launched_in

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.compilation import Compilation
    from hlofuse.library.options import ReplayOptions
    from hlofuse.library.program import Program
    from hlofuse.reports.explain.model import Explanation
    from hlofuse.reports.why.story import Answer as Found


def explained(
    report: Program,
    name: str | None,
    only_pass: str | None,
    computation: str | None,
    only_refused: bool,
    details: bool,
) -> Answer[Any]:
    """`Report.explain`; `details` has the text go through every pass."""
    details = details or only_refused
    try:
        observed = report.observed
    except HlofuseError as error:
        found = None if report.options.changes_xla else _of_another_stage(report, error, name, details)
        if found is None:
            raise
        return found

    from hlofuse.reports.common.xla_result import compare_with_result
    from hlofuse.reports.explain.explain import explain, record_check, selected
    from hlofuse.reports.explain.phrases import record_lines

    _check_names(observed.replay, only_pass, computation)
    details = details or only_pass is not None or computation is not None
    identity, result = observed.replay.input.identity, None
    if identity is not None and has_own_result(observed.replay):
        result = compare_with_result(identity.file, observed.replay.target, observed.replay.after)
    head = head_of(observed.replay, result=result, names=report.names)
    record = record_check(observed)
    notes = [observed.note] if observed.note else []
    if record is not None and (record.agreed != record.records or record.disagreements):
        notes += record_lines(record)[:1]
    answer = report.verdict if name is None else None
    difference = report.difference

    @cache
    def explanation() -> Explanation:
        found = explain(
            observed.replay,
            only_pass=only_pass,
            computation=computation,
            what_if=observed.changes,
            record=record,
            facts=report.facts,
        )
        return found if name is None else selected(found, name, resolver_of(report.facts))

    if name is not None:
        explanation()  # an unknown name is an error of the call

    def draw(console: Console, limit: int = 10, hint: bool = False) -> None:
        from hlofuse.reports.comparison.text import print_difference
        from hlofuse.reports.explain.text import print_explanation
        from hlofuse.reports.verdict.phrases import untried_lines
        from hlofuse.reports.verdict.text import print_screen

        if answer is not None:
            print_screen(answer, console, head, notes, difference, details=hint and not details, limit=limit)
        if name is None and not details:
            return
        if answer is not None:
            full = [observed.note] if observed.note else []
            for line in ("", *full, *untried_lines(answer), ""):
                console.print(line)
            if difference is not None:
                print_difference(difference, console, limit=limit)
        print_explanation(
            explanation(),
            console,
            input_arguments=report.options.input_arguments,
            limit=limit,
            only_refused=only_refused,
        )
        timeline = _timeline(report.options) if details else None
        if timeline:
            console.print(f"\nThe whole compilation is in {timeline[0]}; to see what each pass did:")
            console.print(f"  {timeline[1]}", style="green", soft_wrap=True)

    def data(found: Explanation) -> dict[str, Any]:
        from hlofuse.reports.explain.json import explanation_json
        from hlofuse.reports.verdict.json import verdict_json

        document = explanation_json(found, only_refused=only_refused)
        return {**document, **verdict_json(answer)} if answer is not None else document

    return Answer(
        "explanation",
        explanation,
        json=data,
        body=draw,
        rows_of=lambda document: document["kernels"],
        entries_of=lambda found: found.kernels,
        note=observed.note,
        heads=[head],
        differences=[difference],
        prints_heads=answer is not None,
    )


def _timeline(options: ReplayOptions) -> tuple[str, str] | None:
    """The number of dumps between passes in the directory, and the command that shows them."""
    if not os.path.isdir(options.input):
        return None
    try:
        dumps = DumpDirectory(options.input).pick(options.module).between
    except HlofuseError:  # a corpus folder
        return None
    # With the passes' own dumps only there is nothing that this report does not tell.
    if len({f.pipeline for f in dumps}) < 2:
        return None
    module = ("--module", options.module) if options.module is not None else ()
    return plural(len(dumps), "dump"), command_line("timeline", options.input, *module)


def _check_names(replay: Compilation, only_pass: str | None, computation: str | None) -> None:
    if only_pass is not None:
        passes = [p.name for p in replay.passes]
        if only_pass not in passes:
            raise HlofuseError(
                f"target {replay.target} has no pass {printable(only_pass)}"
                f" (it has {', '.join(passes)}){did_you_mean(only_pass, passes)}"
            )
    if computation is not None:
        names = [c.name for c in replay.before.computations]
        if computation.lstrip("%") not in names:
            raise HlofuseError(
                f"{printable(replay.before.name)} has no computation"
                f" {printable(computation)}{did_you_mean(computation, names)}"
            )


# A module that is not the input of the fusion passes.


def _of_another_stage(
    report: Program, error: HlofuseError, name: str | None, details: bool
) -> Answer[Any] | None:
    """A fused module as it is, or a TPU's; None where there is nothing to say but the error.

    `name` narrows it to some kernels; `details` has what keeps each two of them apart.
    """
    from hlofuse.account import KernelTimes
    from hlofuse.reports.fused.boundaries import explain_fused
    from hlofuse.reports.fused.json import fused_json
    from hlofuse.reports.fused.model import Fused
    from hlofuse.reports.fused.text import print_fused

    tpu = _of_tpu(report.options, error, name)
    if tpu is not None:
        return tpu
    if not isinstance(error, StageError) or not error.stage.is_fused:
        return None
    loaded, stage = report.loaded, error.stage
    if stage.foreign_to(loaded.target) and stage.backend not in NO_TARGET:
        return None
    report.options.listener.note(loaded.device_note)
    answer = report.verdict_as_it_is if name is None else None

    @cache
    def fused() -> Fused:
        with report.options.listener.activity("evaluating the rules"):
            found = explain_fused(loaded.module, loaded.target, loaded.release, stage, loaded.device)
        return found if name is None else found.only(name, launched_in(loaded.module, name))

    head = head_of(loaded, replayed=False)

    def draw(console: Console, limit: int = 10, hint: bool = False) -> None:
        from hlofuse.reports.verdict.text import print_screen

        if answer is not None:
            print_screen(answer, console, head, details=hint and not details, limit=limit)
            if not details:
                return
            console.print()
        found = fused()
        better: tuple[str, ...] = ()
        if found.right_file is not None:
            better = replace(report.options, input=found.right_file, module=None).input_arguments
        print_fused(found, console, limit=limit, better=better)

    def data(found: Fused) -> dict[str, Any]:
        from hlofuse.reports.verdict.json import verdict_json

        times = KernelTimes(loaded.device, loaded.release) if loaded.device is not None else None
        document = fused_json(found, *report.running, report.counted, times)
        return {**document, **verdict_json(answer)} if answer is not None else document

    return Answer(
        "explanation of a fused module",
        fused,
        json=data,
        body=draw,
        rows_of=lambda document: document["kernels"],
        entries_of=lambda found: found.kernels,
        heads=[head],
        prints_heads=answer is not None,
    )


def _of_tpu(options: ReplayOptions, error: HlofuseError, name: str | None) -> Answer[Any] | None:
    from hlofuse.reports.tpu.model import DEVICE, compare_tpu, tpu_files

    if options.input == "-" or options.target is not None:
        return None
    files = tpu_files(Path(options.input), options.module)
    if files is None:
        return None
    if isinstance(error, StageError):
        if error.stage.backend != "tpu":
            return None
    elif not any(name in files[0].name for name in TPU_PIPELINES):
        return None
    if name is not None:
        raise HlofuseError("explain takes no NAME for a TPU dump; hlofuse trace-op follows one operation")
    from hlofuse.reports.tpu.json import tpu_json
    from hlofuse.reports.tpu.text import print_tpu

    with options.listener.activity("comparing"):
        found = compare_tpu(load(files[0]), load(files[1]), options.device or DEVICE)
    return Answer(
        "explanation of a TPU's dumps",
        lambda: found,
        json=tpu_json,
        body=lambda console, limit=10, hint=False: print_tpu(found, console, limit=limit),
        heads=[head_of_dump(files[0])],
    )


# Why instructions were fused or not, also under names of XLA's own run.


def answers_about(report: Program, name: str, other: str | None) -> list[Found]:
    """All answers about a name or a pair, confirmed by replays where a knob settles it."""
    from hlofuse.reports.why.confirm import confirmed
    from hlofuse.reports.why.story import answers

    observed = report.observed
    found = _by_own_names(report, name, other) or answers(
        observed.replay, name, other, costs=observed.costs, names=report.names, unoptimized=report.unoptimized
    )
    return confirmed(found, observed, lambda change: report.options.with_change(observed, change))


def _by_own_names(report: Program, name: str, other: str | None) -> list[Found]:
    """The answer by names of the input, for names of XLA's own run that mean nothing under other settings.

    A note says so. Empty where the names have an answer as they are.
    """
    from hlofuse.reports.why.story import answers, in_the_input

    observed = report.observed
    if observed.xla is None:
        return []
    try:
        if _has_answer(answers(observed.replay, name, other)):
            return []
    except HlofuseError:
        pass
    queries = (name,) if other is None else (name, other)
    try:
        names = final_names_of(observed.xla.replay)
        own = [names.names_at_fusion.get(n.strip().lstrip("%"), n) for n in queries]
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
    from hlofuse.reports.why import PairAnswer

    return any(not isinstance(a, PairAnswer) or a.outcome != "apart" for a in found)
