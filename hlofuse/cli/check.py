"""`hlofuse check`: fusion against a budget or a stored baseline, for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.options import color_option
from hlofuse.cli.replaying import ReplayRequest, replay_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hlofuse.checker import Check, Measured
    from hlofuse.inputs import DumpedModule

FORMATS = ("text", "json", "markdown", "github", "sarif", "junit")


@click.command("check")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--max-kernels", type=click.IntRange(min=0), metavar="N", help="Kernels a module may have.")
@click.option("--max-bytes", metavar="SIZE", help="Bytes a module may move: 1500000, 1.5MB, 2GiB.")
@click.option("--max-time", metavar="TIME", help="Time a module may take by XLA's estimate: 120us, 0.5ms.")
@click.option(
    "--baseline",
    metavar="FILE|DIR",
    type=click.Path(path_type=Path),
    help="What fusion left when it was last reviewed: one file, or a folder with one for each module.",
)
@click.option("--update", is_flag=True, help="Write the baseline from what is there now.")
@click.option(
    "--tolerance",
    metavar="PERCENT",
    type=click.FloatRange(0, 1000),
    default=0.0,
    help="By how much bytes and time may exceed the baseline.  [default: 0]",
)
@click.option("--strict", is_flag=True, help="Any difference from the baseline is an error.")
@click.option("--exit-zero", is_flag=True, help="Report what broke, and exit with 0 all the same.")
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The project's folder, which source files are told relative to.  [default: here]",
)
@replay_options
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write the report to FILE."
)
@color_option
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to report: github annotates source lines, markdown is for a job summary.",
)
def command(
    inputs: tuple[str, ...],
    max_kernels: int | None,
    max_bytes: str | None,
    max_time: str | None,
    baseline: Path | None,
    update: bool,
    tolerance: float,
    strict: bool,
    exit_zero: bool,
    root: Path,
    form: str,
    color: str,
    output: Path | None,
    **request: Any,
) -> int:
    """Hold what fusion leaves against a budget or a baseline, and say what broke, where and by which rule.

    INPUT is a dump, a dump directory or a corpus (every module of it, unless --module picks one). A module
    from before the fusion passes is replayed; one that XLA has fused is taken as it is.

    Exit status 0: as it should be, 1: something broke, 2: trouble.
    """
    from dataclasses import replace

    from hlofuse.checker import Baseline, check_modules, read_baseline
    from hlofuse.checker.limits import Budget, parse_bytes, parse_time
    from hlofuse.cli.output import write_file
    from hlofuse.ir.errors import HlofuseError

    budget = Budget(
        kernels=max_kernels,
        bytes=parse_bytes(max_bytes) if max_bytes is not None else None,
        us=parse_time(max_time) if max_time is not None else None,
    )
    if update and baseline is None:
        raise HlofuseError("--update writes a baseline: --baseline says which")
    if baseline is None and budget.is_empty:
        raise HlofuseError(
            "nothing to check against: give --baseline, --max-kernels, --max-bytes or --max-time"
        )
    stored = Baseline()
    if baseline is not None and not (update and _nothing_there(baseline)):
        stored = read_baseline(baseline)
    asked = [ReplayRequest(input=path, **request) for path in inputs]
    measured = [m for r in asked for m in _measured(r, root)]
    measured = _with_names_of_their_own(measured)
    if update:
        from hlofuse.checker.baseline_text import updated_files

        assert baseline is not None
        files = updated_files(baseline, [m.profile for m in measured])
        stored.profiles = {}
    found = check_modules(
        measured,
        budgets=[] if budget.is_empty else [budget],
        baseline=stored,
        baseline_name=str(baseline) if baseline is not None else None,
        all_there=any(map(os.path.isdir, inputs)) and request["module"] is None,
        tolerance=tolerance / 100,
        strict=strict,
    )
    if update:
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, text)
        found = replace(found, updated=True)
    _report(found, form, color, output, root)
    return 1 if found.failed and not exit_zero else 0


def _nothing_there(baseline: Path) -> bool:
    return not baseline.exists() or (baseline.is_dir() and not any(baseline.glob("*.toml")))


def _measured(request: ReplayRequest, root: Path) -> Iterator[Measured]:
    """The modules of one input, each under the name that it is paired by."""
    from dataclasses import replace

    from hlofuse.inputs.dump_directory import DumpDirectory, corpus_cases, is_corpus_case

    folder = Path(request.input)
    if request.input == "-" or not folder.is_dir():
        yield _one(request, None, root)
    elif is_corpus_case(folder):
        yield _one(request, folder.name, root)
    elif corpus_cases(folder):
        for case in corpus_cases(folder):
            if request.module in (None, case.name):
                yield _one(replace(request, input=str(case), module=None), case.name, root)
        if request.module is not None and request.module not in {c.name for c in corpus_cases(folder)}:
            request.read()  # says which there are
    elif request.module is not None:
        yield _one(request, None, root)
    else:
        for module in DumpDirectory(folder).modules:
            file = _file_of(module, request)
            if file is not None:
                yield _one(replace(request, input=str(file)), module.name, root)
            else:
                yield _one(replace(request, module=module.label), module.name, root)


def _file_of(module: DumpedModule, request: ReplayRequest) -> Path | None:
    """The finished module, of a dump without the stages that a replay takes; None where those are there."""
    from hlofuse.inputs import choose_target
    from hlofuse.ir.errors import HlofuseError

    folder = Path(request.input)
    target = request.target or choose_target(folder, module.label, device=request.device is not None).name
    try:
        module.pass_input(target)
        return None
    except HlofuseError:
        finished = [f for name, f in sorted(module.whole.items()) if name.endswith("after_optimizations")]
        return finished[0] if finished and not request.changes_xla else None


def _one(request: ReplayRequest, name: str | None, root: Path) -> Measured:
    from hlofuse.checker.check import Measured
    from hlofuse.checker.held import held_apart
    from hlofuse.checker.measure import profile_of_replay, profile_of_result
    from hlofuse.inputs import require_input_stage
    from hlofuse.inputs.stage import FUSED, SCHEDULED, stage_of

    subject = request.read(any_stage=True)
    module, target = subject.module, subject.target
    file = module.filename or request.input
    replayed = request.assume_input or request.changes_xla
    if not replayed and stage_of(module, target).name in (FUSED, SCHEDULED):
        return Measured(profile_of_result(name or module.name, module, target, root), file, list)
    if not request.assume_input:
        require_input_stage(module, target)
    if subject.variant is None:
        subject = request.read()  # says what is missing
    observed = subject.observe()
    profile = profile_of_replay(name or module.name, observed, root)
    return Measured(profile, file, lambda: held_apart(observed, root), subject.changes)


def _with_names_of_their_own(measured: list[Measured]) -> list[Measured]:
    """A module that was compiled several times is `jit_f`, `jit_f (2)`, …, in the order given."""
    from dataclasses import replace

    seen: dict[str, int] = {}
    found = []
    for m in measured:
        name = m.profile.name
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            m = replace(m, profile=replace(m.profile, name=f"{name} ({seen[name]})"))
        found.append(m)
    return found


def _report(check: Check, form: str, color: str, output: Path | None, root: Path) -> None:
    from json import dumps

    from hlofuse.cli.output import emit, rendered

    if form == "json":
        from hlofuse.checker.report.json_report import check_json

        text = dumps(check_json(check), indent=2)
    elif form == "sarif":
        from hlofuse.checker.report.sarif import check_sarif

        text = dumps(check_sarif(check), indent=2)
    elif form == "junit":
        from hlofuse.checker.report.junit import check_junit

        text = check_junit(check)
    elif form == "github":
        from hlofuse.checker.report.github import check_github

        text = check_github(check, root)
    elif form == "markdown":
        from hlofuse.checker.report.markdown import check_markdown

        text = check_markdown(check)
    else:
        from hlofuse.checker.report.text import print_check

        text = rendered(lambda console: print_check(check, console), color, output)
    emit(text, output)
