"""Answers about a module that is not replayed: a fused one, the dumps of a TPU."""

from functools import cache
from typing import Any

from rich.console import Console

from hlofuse.account import KernelTimes
from hlofuse.ir.record import replace
from hlofuse.reports.common.names import launched_in
from hlofuse.reports.fused.boundaries import explain_fused
from hlofuse.reports.fused.json import fused_json
from hlofuse.reports.fused.model import Fused
from hlofuse.reports.fused.text import print_fused
from hlofuse.reports.fused.tpu import pair_json, print_tpu
from hlofuse.reports.verdict.json import verdict_json
from hlofuse.reports.verdict.text import print_screen
from .answer import Answer
from .heads import head_of
from .program import Program
from .proving import tried_verdict
from .questions import Explain
from .reasons import draw_kernels, tpu_pair


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

    def draw(console: Console, limit: int = 10, hint: bool = False) -> None:
        if answer is not None:
            print_screen(answer, console, head, details=hint and not details, limit=limit)
            if not details:
                return
            console.print()
        found = fused()
        names = [] if name is None else [name]
        pair = tpu_pair(report, names, report)
        is_short = found.target == "tpu" and not details
        if is_short and draw_kernels(report, names, pair, console, limit):
            return
        if pair is not None:
            print_tpu(pair, console, limit=limit)
            return
        better: tuple[str, ...] = ()
        if found.right_file is not None:
            better = replace(report.options, input=found.right_file, module=None).input_arguments
        print_fused(found, console, limit=limit, better=better)

    def data(found: Fused) -> dict[str, Any]:
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
