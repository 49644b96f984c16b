"""The answers of `explain` and `why`, also about a module that is not replayed: fused, or of a TPU."""

import os
from functools import cache
from typing import Any

from hlofuse.account import KernelTimes
from hlofuse.format import command_line, plural
from hlofuse.format.terminal import Page, print_lines
from hlofuse.inputs.dump_directory import DumpDirectory
from hlofuse.ir import HlofuseError, Json, Strings, replace
from hlofuse.reports.common.names import launched_in
from hlofuse.reports.common.xla_result import compare_with_result
from hlofuse.reports.comparison.text import print_difference
from hlofuse.reports.explain.explain import explain, record_check, selected
from hlofuse.reports.explain.model import Explanation, explanation_json
from hlofuse.reports.explain.phrases import record_lines
from hlofuse.reports.explain.text import print_explanation
from hlofuse.reports.fused.model import Fused, explain_fused
from hlofuse.reports.fused.text import fused_json, print_fused
from hlofuse.reports.fused.tpu import pair_json, print_tpu
from hlofuse.reports.verdict.json import verdict_json
from hlofuse.reports.verdict.phrases import rounding_lines, untried_lines
from hlofuse.reports.verdict.text import print_screen, print_suggestions
from .answer import Answer
from .heads import head_of
from .naming import resolver_of
from .options import ReplayOptions
from .program import Program
from .proving import tried_verdict
from .questions import Explain, Why
from .reasons import draw_kernels, final_of_tpu, tpu_pair, why


def answer_of_another_stage(report: Program, options: Explain) -> Answer[Any] | None:
    """A fused module as it is; None for another."""
    name, details = options.name, options.details
    if not report.is_taken_as_it_is:
        return None
    loaded, stage = report.loaded, report.identity.shown
    loaded.note_device()
    answer = tried_verdict(report, options)

    @cache
    def fused() -> Fused:
        with report.options.listener.activity("evaluating the rules"):
            found = explain_fused(loaded.module, loaded.target, loaded.release, stage, loaded.device)
        return found if name is None else found.only(name, launched_in(loaded.module, name))

    head = head_of(loaded, replayed=False)

    def draw(console: Page, hint: bool = False) -> None:
        if answer is not None:
            print_screen(answer, console, head, details=hint and not details, limit=console.limit)
            if not details:
                return
            console.print()
        found = fused()
        names = [] if name is None else [name]
        pair = tpu_pair(report, names, report)
        is_short = found.target == "tpu" and not details
        if is_short and draw_kernels(report, names, pair, console):
            return
        if pair is not None:
            print_tpu(pair, console)
            return
        better: Strings = ()
        if found.right_file is not None:
            better = replace(report.options, input=found.right_file, module=None).input_arguments
        print_fused(found, console, better=better)

    def data(found: Fused) -> Json:
        final, as_it_is = report.running
        times = KernelTimes(loaded.device, loaded.release) if loaded.device is not None else final
        document = fused_json(found, final, as_it_is, report.counted, times.kernel)
        if (pair := tpu_pair(report, (), report) if name is None else None) is not None:
            document |= pair_json(pair)
        return {**document, **verdict_json(answer)} if answer is not None else document

    return Answer(
        "explanation of a fused module",
        fused,
        json=data,
        body=draw,
        rows_of="kernels",
        heads=[head],
        prints_heads=answer is not None,
    )


def explained(report: Program, options: Explain) -> Answer[Any]:
    report = final_of_tpu(report) or report
    name, details = options.name, options.details
    try:
        observed = report.observed
    except HlofuseError:
        found = None if report.options.changes_xla else answer_of_another_stage(report, options)
        if found is None:
            raise
        return found

    head = head_of(observed.replay, result=compare_with_result(observed.replay), names=True)
    record = record_check(observed)
    notes = [observed.note] if observed.note else []
    if record is not None and (record.agreed != record.records or record.disagreements):
        notes += record_lines(record)[:1]

    def draw_figures(console: Page) -> None:
        from hlofuse.reports.verdict.verdict import verdict

        figures = verdict(observed, report.facts, about_all=False)
        print_screen(figures, console, head, notes, details=False, tried=False)

    report.draw_figures = draw_figures
    answer = tried_verdict(report, options)
    difference = report.difference

    @cache
    def explanation() -> Explanation:
        found = explain(
            observed.replay,
            what_if=observed.changes,
            record=record,
            facts=report.facts,
        )
        return found if name is None else selected(found, name, resolver_of(report.facts))

    is_short = name is not None and not details
    if name is not None:
        resolver_of(report.facts).launched(name)  # an unknown name is an error of the call

    def draw(console: Page, hint: bool = False) -> None:
        if name is not None and is_short:
            why(report, Why(name)).draw(console, console.limit)
            print_advice_at(report, name, console)
            return
        if answer is not None:
            hints, limit = hint and not details, console.limit
            print_screen(answer, console, head, notes, difference, details=hints, limit=limit)
        if name is None and not details:
            return
        if answer is not None:
            full = [observed.note] if observed.note else []
            untried = [*untried_lines(answer)][1:]  # the screen has the first
            full += ["Changes whose gain is not known:", *untried] if untried else []
            print_lines(console, ("", *full, "") if full else ("",), 0)
            if difference is not None:
                print_difference(difference, console)
        print_explanation(explanation(), console, input_arguments=report.options.input_arguments)
        timeline = _timeline(report.options) if details else None
        if timeline:
            console.print(f"\nThe whole compilation is in {timeline[0]}; to see what each pass did:")
            console.print(f"  {timeline[1]}", style="green", soft_wrap=True)

    def data(found: Explanation) -> Json:
        document = explanation_json(found)
        return {**document, **verdict_json(answer)} if answer is not None else document

    return Answer(
        "explanation",
        explanation,
        json=data,
        body=draw,
        rows_of="kernels",
        note=observed.note,
        heads=[head],
        differences=[difference],
        prints_heads=answer is not None or is_short,
    )


def print_advice_at(report: Program, name: str, console: Page) -> None:
    """Print the suggestions about the lines of the kernels of a name; nothing without any."""
    named, found = resolver_of(report.facts).launched(name), report.verdict
    places = [k.place for k in report.facts.kernels() if k.place.name in named]
    lines = {(line or "").partition(" ")[0] for p in places for line in (p.source, p.called_from)} | {name}
    tried, untried, rounding = (
        tuple(
            replace(s, sources=tuple(sorted(s.sources, key=lambda x: x.partition(" ")[0] not in lines)))
            for s in group
            if lines & {line.partition(" ")[0] for line in s.sources}
        )
        for group in (found.suggestions, found.untried, found.rounding)
    )
    about = replace(found, suggestions=tried, untried=untried, rounding=rounding, together=None)
    if tried or untried or rounding:
        console.print()
    if tried:
        print_suggestions(about, console)
    print_lines(console, (*(() if tried else rounding_lines(about)), *untried_lines(about)), 0, "dim")


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
