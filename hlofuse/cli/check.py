"""`hlofuse check`: fusion against a budget or a stored baseline, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse import __version__
from hlofuse.cli.common.measuring import has_several, measure_all
from hlofuse.cli.common.options import report_options_with
from hlofuse.cli.common.output import Output, save
from hlofuse.cli.common.replaying import ReplayOptions, replay_options
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.reports.check import Check
    from hlofuse.reports.common.head import Head

FORMATS = ("text", "json", "markdown", "github", "sarif", "junit")


@click.command("check")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--max-kernels", type=click.IntRange(min=0), metavar="N", help="Maximum kernels per module.")
@click.option("--max-bytes", metavar="SIZE", help="Maximum bytes moved per module: 1500000, 1.5MB, 2GiB.")
@click.option("--max-time", metavar="TIME", help="Maximum estimated time per module: 120us, 0.5ms.")
@click.option(
    "--baseline",
    metavar="FILE|DIR",
    type=click.Path(path_type=Path),
    help="Reviewed state to compare with: one file, or a directory with one file per module.",
)
@click.option("--update", is_flag=True, help="Write the current state as the baseline.")
@click.option(
    "--tolerance",
    metavar="PERCENT",
    type=click.FloatRange(0, 1000),
    default=0.0,
    help="Tolerance for bytes and time over the baseline.  [default: 0]",
)
@click.option("--strict", is_flag=True, help="Fail on any difference from the baseline.")
@click.option("--exit-zero", is_flag=True, help="Report failures, but exit with 0.")
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Project directory that source paths are relative to.  [default: current directory]",
)
@replay_options
@click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write another report, such as sarif=fusion.sarif; repeatable.",
)
@report_options_with(FORMATS, "Report format: github annotates source lines, markdown fits a job summary.")
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
    reports: tuple[str, ...],
    out: Output,
    **request: Any,
) -> int:
    """Check kernels, bytes and time against a budget or baseline; report failures by line and rule.

    INPUT is a dump, a dump directory or a corpus (all modules unless --module selects one). A module
    before fusion is replayed; a fused one is measured as it is.

    Exit status 0: OK, 1: failed, 2: wrong input or call.
    """

    from hlofuse.cli.common.replaying import warn
    from hlofuse.reports.check import Baseline, check_modules, read_baseline
    from hlofuse.reports.check.limits import Budget, parse_bytes, parse_time

    further = _more_reports(reports)
    budget = Budget(
        kernels=max_kernels,
        bytes=parse_bytes(max_bytes) if max_bytes is not None else None,
        us=parse_time(max_time) if max_time is not None else None,
    )
    if update and baseline is None:
        raise HlofuseError("--update needs --baseline FILE, the baseline to write")
    if baseline is None and budget.is_empty:
        raise HlofuseError(
            "nothing to check against; give --baseline, --max-kernels, --max-bytes or --max-time"
        )
    stored = Baseline()
    if baseline is not None and not (update and _nothing_there(baseline)):
        stored = read_baseline(baseline)
    requests = [ReplayOptions(input=path, **request) for path in inputs]
    measured = measure_all(requests, root, stored.profiles)
    if update:
        from hlofuse.reports.check.baseline import updated_files

        assert baseline is not None
        files = updated_files(baseline, [m.profile for m in measured])
        stored.profiles = {}
    found = check_modules(
        measured,
        budgets=[] if budget.is_empty else [budget],
        baseline=stored,
        baseline_name=str(baseline) if baseline is not None else None,
        all_there=any(map(has_several, inputs)) and request["module"] is None,
        tolerance=tolerance / 100,
        strict=strict,
    )
    if update:
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            save(file, text)
        found = replace(found, updated=True)
    if out.form not in ("text", "json", "markdown"):  # those say it themselves
        for note in found.notes:
            warn(note)
    heads = [m.head for m in measured if m.head is not None]
    for kind, file in further:
        _write(found, Output(kind, "never", file), root, heads)
    _write(found, out, root, heads)
    return 1 if found.failed and not exit_zero else 0


def _nothing_there(baseline: Path) -> bool:
    return not baseline.exists() or (baseline.is_dir() and not any(baseline.glob("*.toml")))


def _more_reports(arguments: tuple[str, ...]) -> list[tuple[str, Path]]:
    found = []
    for word in arguments:
        form, _, file = word.partition("=")
        if form not in FORMATS or not file:
            raise HlofuseError(
                f"--report {printable(word)}: expected FORMAT=FILE with FORMAT one of {', '.join(FORMATS)}"
            )
        found.append((form, Path(file)))
    return found


def _write(check: Check, out: Output, root: Path, heads: Sequence[Head]) -> None:
    from hlofuse.reports.common.head import head_lines, with_heads

    if out.form == "json":
        from hlofuse.reports.check.json import check_json

        out.write(dumps(with_heads(check_json(check), heads), indent=2))
    elif out.form == "sarif":
        from hlofuse.reports.check.sarif import check_sarif

        out.write(dumps(check_sarif(check, __version__), indent=2))
    elif out.form == "junit":
        from hlofuse.reports.check.junit import check_junit

        out.write(check_junit(check))
    elif out.form == "github":
        from hlofuse.reports.check.github import check_github

        out.write(check_github(check, root))
    elif out.form == "markdown":
        from hlofuse.format.escape import markdown
        from hlofuse.reports.check.markdown import check_markdown

        lines = "".join(f"{markdown(line)}\n\n" for line in head_lines(heads))
        out.write(lines + check_markdown(check))
    else:
        from hlofuse.reports.check.text import print_check

        def draw(console: Console) -> None:
            for line in head_lines(heads):
                console.print(line, style="dim")
            print_check(check, console)

        out.draw(draw)
