"""`hlofuse check`: fusion against a budget or a stored baseline, for CI."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse import __version__
from hlofuse.cli.common.options import report_options_with
from hlofuse.cli.common.output import Output, save
from hlofuse.cli.common.request import measured_options, options_of, warn
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from hlofuse.library.answer import Answer
    from hlofuse.reports.check import Check

FORMATS = ("text", "json", "markdown", "github", "sarif", "junit")


@click.command("check")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--max-kernels", type=click.IntRange(min=0), metavar="N", help="Maximum kernels per module.")
@click.option("--max-bytes", metavar="SIZE", help="Maximum bytes moved per module: 1500000, 1.5MB, 2GiB.")
@click.option("--max-time", metavar="TIME", help="Maximum time per module: 120us, 0.5ms.")
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
@measured_options
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

    INPUT is a dump, a dump directory, a corpus or a profile (all modules unless --module selects one). A
    module before fusion is replayed; a fused one is taken as it is.

    With a profile, budgets and the baseline are about measured time, which no estimate is compared with.

    Exit status 0: OK, 1: failed, 2: wrong input or call.
    """

    from hlofuse.library.measuring import Limits, checked

    further = _more_reports(reports)
    limits = Limits(max_kernels, max_bytes, max_time, baseline, tolerance, strict)
    requests = [options_of(path, request) for path in inputs]
    found, files = checked(requests, limits, root, update=update)
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        save(file, text)
    if out.form not in ("text", "json", "markdown"):  # those say it themselves
        for note in found.data.notes:
            warn(note)
    for kind, file in further:
        _write(found, Output(kind, "never", file), root)
    _write(found, out, root)
    return 1 if found.data.failed and not exit_zero else 0


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


def _write(found: Answer[Check], out: Output, root: Path) -> None:
    if out.form == "sarif":
        from hlofuse.reports.check.sarif import check_sarif

        out.write(dumps(check_sarif(found.data, __version__), indent=2))
    elif out.form == "junit":
        from hlofuse.reports.check.junit import check_junit

        out.write(check_junit(found.data))
    elif out.form == "github":
        from hlofuse.reports.check.github import check_github

        out.write(check_github(found.data, root))
    else:
        out.show(found)
