"""`hlofuse explain`: what XLA fuses, and what stops the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, limit_option, name_argument, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.progress import spinner
from hlofuse.cli.common.replaying import ReplayOptions, replay_options
from hlofuse.cli.common.reporting import head_of, head_of_dump
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.account import Observed


@click.command("explain")
@input_argument
@name_argument
@click.option(
    "--pass", "only_pass", metavar="P", shell_complete=completion.one_pass, help="Only this pass's decisions."
)
@click.option("--computation", metavar="C", help="Only decisions in this computation.")
@limit_option(10, "Rows in each list; 0 shows all.")
@click.option(
    "--compare-device",
    metavar="D",
    shell_complete=completion.devices,
    help="Also replay on this device and compare the decisions.",
)
@click.option("--only-refused", is_flag=True, help="Only refused fusions.")
@click.option(
    "--details", is_flag=True, help="Add every pass: what was fused and refused, and by which rule."
)
@replay_options
@report_options
def command(
    input: str,
    name: str | None,
    only_pass: str | None,
    computation: str | None,
    limit: int,
    compare_device: str | None,
    only_refused: bool,
    details: bool,
    out: Output,
    **request: Any,
) -> int:
    """Explain the module in INPUT: its kernels, their time, what fusion could still save and how.

    One screen: kernels, launches, time and bytes; bounds on the possible saving; changes that were tried
    on this module; the slowest kernels. --details adds, pass by pass, what was fused and refused,
    and by which rule.

    NAME selects kernels: a final name (as in a profiler), a name at the fusion input or before
    optimizations, a source line, model.py:42, or a part of an op_name, jit(f)/softmax.

    A fused module: its kernels, and why each pair of them was not fused.
    A module before optimizations: an approximate replay, marked as such.
    A TPU dump: what was fused, and what CPU and GPU would fuse.
    """
    from hlofuse.cli.common.naming import final_names_of, unoptimized_of, with_events
    from hlofuse.reports.common.facts import Facts
    from hlofuse.reports.common.xla_result import compare_with_result
    from hlofuse.reports.difference.model import difference_of
    from hlofuse.reports.explain.explain import explain, record_check
    from hlofuse.reports.explain.phrases import record_lines
    from hlofuse.reports.verdict.verdict import verdict

    options = ReplayOptions(input=input, **request)
    try:
        observed = options.run()
    except HlofuseError as error:
        if explain_stage(options, error, out, limit, name, details or only_refused):
            return 0
        raise
    if compare_device is not None:
        if name is not None:
            raise HlofuseError("--compare-device compares whole modules and takes no NAME")
        _compare(options, observed, compare_device, limit, out)
        return 0
    _check_names(observed.replay, only_pass, computation)
    with_events(observed.replay)
    names = final_names_of(observed.replay)
    facts = Facts(observed.replay, observed.costs, names)
    details = details or only_refused or only_pass is not None or computation is not None
    identity = observed.replay.input.identity
    result = None
    if not observed.changes and identity is not None:
        result = compare_with_result(identity.file, observed.replay.target, observed.replay.after)
    head = head_of(observed.replay, result=result, names=names)
    record = record_check(observed)
    notes = [observed.note] if observed.note else []
    if record is not None and (record.agreed != record.records or record.disagreements):
        notes += record_lines(record)[:1]
    answer = found = None
    if name is None:
        with spinner("trying changes"):
            answer = verdict(observed, facts, unoptimized=lambda: unoptimized_of(observed.replay))
    if name is not None or details or out.form == "json":
        found = explain(
            observed.replay,
            only_pass=only_pass,
            computation=computation,
            what_if=observed.changes,
            record=record,
            facts=facts,
        )
    if name is not None:
        from hlofuse.cli.common.naming import resolver_of
        from hlofuse.reports.explain.selection import selected

        assert found is not None
        found = selected(found, name, resolver_of(facts))
    difference = difference_of(observed)
    timeline = _timeline(options) if details else None

    def draw(console: Console) -> None:
        from hlofuse.reports.difference.text import print_difference
        from hlofuse.reports.explain.text import print_explanation
        from hlofuse.reports.verdict.phrases import untried_lines
        from hlofuse.reports.verdict.text import print_screen

        if answer is not None:
            print_screen(answer, console, head, notes, difference, details=not details)
        if found is None:
            return
        if answer is not None:
            full = [observed.note] if observed.note else []
            for line in ("", *full, *untried_lines(answer), ""):
                console.print(line)
            if difference is not None:
                print_difference(difference, console, limit=limit)
        print_explanation(
            found,
            console,
            input_arguments=options.input_arguments,
            limit=limit,
            only_refused=only_refused,
        )
        if timeline:
            console.print(f"\nThe whole compilation lies here, {timeline[0]}: what each pass did is told by")
            console.print(f"  {timeline[1]}", style="green", soft_wrap=True)

    def data() -> dict[str, Any]:
        from hlofuse.reports.explain.json import explanation_json
        from hlofuse.reports.verdict.json import verdict_json

        assert found is not None
        document = explanation_json(found, only_refused=only_refused)
        return {**document, **verdict_json(answer)} if answer is not None else document

    out.report(
        text=draw,
        json=data,
        note=observed.note,
        heads=[head],
        differences=[difference] if difference is not None else [],
        limit=limit,
        shows_heads=answer is None,
    )
    return 0


def _timeline(options: ReplayOptions) -> tuple[str, str] | None:
    """How many dumps between passes lie in the directory, and the command that tells of them."""
    import os

    from hlofuse.format.escape import command_line
    from hlofuse.format.units import plural
    from hlofuse.inputs.dump_directory import DumpDirectory

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


def _compare(
    options: ReplayOptions,
    observed: Observed,
    other: str,
    limit: int,
    out: Output,
) -> None:
    from hlofuse.reports.compare_builds.json import comparison_json
    from hlofuse.reports.compare_builds.model import compare_builds
    from hlofuse.reports.compare_builds.text import print_comparison

    second = options.on_device(observed, other)
    found = compare_builds(observed, second)

    def draw(console: Console) -> None:
        print_comparison(found, console, limit=limit)

    out.report(
        text=draw,
        json=lambda: comparison_json(found),
        note=observed.note,
        heads=[head_of(observed.replay)],
    )


def _check_names(replay: Any, only_pass: str | None, computation: str | None) -> None:
    from hlofuse.format.escape import printable
    from hlofuse.inputs.suggest import did_you_mean

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


# What `explain` says of a module that is not the input of the fusion passes.


def explain_stage(
    options: ReplayOptions,
    error: HlofuseError,
    out: Output,
    limit: int,
    name: str | None = None,
    details: bool = False,
) -> bool:
    """Report on a fused module as it is, or on a TPU's; False where there is nothing to say but the error.

    `name` narrows it to some kernels; `details` has what keeps each two of them apart.
    """
    from hlofuse.inputs.stage import StageError

    if options.changes_xla:
        return False
    if _explain_tpu(options, error, out, limit, name):
        return True
    if not isinstance(error, StageError) or not error.stage.is_fused:
        return False

    from hlofuse.inputs.choose_target import NO_TARGET
    from hlofuse.reports.common.names import launched_in
    from hlofuse.reports.fused.boundaries import explain_fused
    from hlofuse.reports.fused.model import fused_json
    from hlofuse.reports.fused.text import print_fused

    loaded = options.read(any_stage=True)
    if error.stage.foreign_to(loaded.target) and error.stage.backend not in NO_TARGET:
        return False
    device = loaded.config.device if loaded.config is not None else None
    identity = loaded.input.identity
    answer = found = None
    if name is None and identity is not None:
        from hlofuse.account.running import running
        from hlofuse.reports.verdict.verdict import verdict_as_it_is

        answer = verdict_as_it_is(running(loaded.module, identity, device)[0], loaded.release, device)
    better: tuple[str, ...] = ()
    if details or answer is None or out.form == "json":
        with spinner("evaluating the rules"):
            found = explain_fused(loaded.module, loaded.target, loaded.release, error.stage, device)
        if name is not None:
            found = found.only(name, launched_in(loaded.module, name))
        if found.right_file is not None:
            better = replace(options, input=found.right_file, module=None).input_arguments
    head = head_of(loaded, replayed=False)

    def draw(console: Console) -> None:
        from hlofuse.reports.verdict.text import print_screen

        if answer is not None:
            print_screen(answer, console, head, details=found is None)
            if found is not None:
                console.print()
        if found is not None:
            print_fused(found, console, limit=limit, better=better)

    def data() -> dict[str, Any]:
        from hlofuse.reports.verdict.json import verdict_json

        assert found is not None
        return {**fused_json(found), **(verdict_json(answer) if answer is not None else {})}

    out.report(text=draw, json=data, heads=[head], shows_heads=answer is None)
    return True


def _explain_tpu(
    options: ReplayOptions, error: HlofuseError, out: Output, limit: int, name: str | None
) -> bool:
    from hlofuse.inputs.dump_names import TPU_PIPELINES
    from hlofuse.inputs.stage import StageError
    from hlofuse.reports.tpu.model import DEVICE, compare_tpu, tpu_files

    if options.input == "-" or options.target is not None:
        return False
    files = tpu_files(Path(options.input), options.module)
    if files is None:
        return False
    if isinstance(error, StageError):
        if error.stage.backend != "tpu":
            return False
    elif not any(name in files[0].name for name in TPU_PIPELINES):
        return False
    if name is not None:
        raise HlofuseError("explain takes no NAME for a TPU dump; hlofuse trace-op follows one operation")
    from hlofuse.inputs import load
    from hlofuse.reports.tpu.json import tpu_json
    from hlofuse.reports.tpu.text import print_tpu

    with spinner("comparing"):
        found = compare_tpu(load(files[0]), load(files[1]), options.device or DEVICE)
    out.report(
        text=lambda console: print_tpu(found, console, limit=limit),
        json=lambda: tpu_json(found),
        heads=[head_of_dump(files[0])],
    )
    return True
