"""`hlofuse check`: fusion against a budget or a stored baseline, for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hlofuse.cli.common.options import baseline_options, report_options_with
from hlofuse.cli.common.output import CHECK_FORMATS, Output, save
from hlofuse.cli.common.request import measured_options, options_of, warn
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError


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
@baseline_options
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
@report_options_with(
    CHECK_FORMATS, "Report format: github annotates source lines, markdown fits a job summary."
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

    from hlofuse.library.measuring import checked
    from hlofuse.reports.check.limits import Budget

    further = _more_reports(reports)
    budget = Budget.of(max_kernels, max_bytes, max_time)
    requests = [options_of(path, request) for path in inputs]
    found, files = checked(requests, budget, baseline, tolerance, strict, root, update)
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        save(file, text)
    if out.form not in ("text", "json", "markdown"):  # those say it themselves
        for note in found.data.notes:
            warn(note)
    for kind, file in further:
        Output(kind, "never", file).show_check(found, root)
    out.show_check(found, root)
    return 1 if found.data.failed and not exit_zero else 0


def _more_reports(arguments: tuple[str, ...]) -> list[tuple[str, Path]]:
    found = []
    for word in arguments:
        form, _, file = word.partition("=")
        if form not in CHECK_FORMATS or not file:
            formats = ", ".join(CHECK_FORMATS)
            raise HlofuseError(
                f"--report {printable(word)}: expected FORMAT=FILE with FORMAT one of {formats}"
            )
        found.append((form, Path(file)))
    return found
