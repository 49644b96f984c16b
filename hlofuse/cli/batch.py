"""`hlofuse batch`: thousands of modules, into tables."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from hlofuse.batch import summary
from hlofuse.batch.compare import compared
from hlofuse.batch.processes import run
from hlofuse.batch.work import Task
from hlofuse.library.questions import Check
from hlofuse.reports.check.baseline import parse_bytes
from .common.messages import message, progress_bar, wrote
from .common.options import (
    FILE,
    FORMATS,
    flag,
    limit_option,
    option,
    output_option,
    parameters,
    report_options,
    report_options_with,
    stage_options,
    target_options,
    what_if_options,
)
from .common.output import CHECK_FORMATS, Output


class _Default(click.Group):
    """A group whose first word may be left out: `hlofuse batch DIR` is `hlofuse batch run DIR`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("batch", cls=_Default, no_args_is_help=False)
def command() -> None:
    """Replay thousands of modules into tables; query and compare such runs.

    `hlofuse batch SOURCE... -o OUT` is `hlofuse batch run SOURCE... -o OUT`, whose options are those of
    `hlofuse batch run --help`."""


_limit = limit_option(10, "Rows of each section; 0 shows all.")
_folder = partial(click.argument, type=FILE)


@command.command("run")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@output_option("Folder for tables and summary. A run that was stopped goes on there.", "DIR")
@flag("--pages", "Write the page of each module, and index.html with links to them.")
@flag("--no-suggestions", "Try no changes: more than twice as fast.")
@option("--workers", "N", "Workers.  [default: one per core]", type=click.IntRange(min=1))
@click.option(
    "--max-seconds",
    type=click.FloatRange(0.1),
    default=600,
    metavar="S",
    help="Most time for a module.  [default: 600]",
)
@option("--max-memory", "SIZE", "Most memory.", default="4GiB")
@stage_options
@target_options
@what_if_options
@option("--format form", FORMATS, "Format.", default="text")
@_limit
def _run(
    sources: tuple[str, ...],
    output: Path,
    pages: bool,
    no_suggestions: bool,
    workers: int | None,
    max_seconds: float,
    max_memory: str,
    form: str,
    limit: int,
    **request: Any,
) -> int:
    """Replay all modules in the sources into tables.

    SOURCE is a dump, a folder with dumps or profiles anywhere in it, a glob, an archive (.zip, .tar.gz), an
    address such as s3://bucket/dumps, or @FILE with a source in each line. DIR gets modules.parquet,
    kernels.parquet, edges.parquet, suggestions.parquet and work.parquet, and summary.md.

    A module that cannot be read is a row with its error. Exit status 0: done, 2: wrong call."""
    folder = output.absolute() / "pages" if pages else None
    task = Task(request, not no_suggestions, max_seconds, parse_bytes(max_memory), pages=folder)
    with progress_bar("replaying") as progress:
        done, of = run(sources, output, task, workers or os.cpu_count() or 1, progress)
    message(
        "note",
        f"worked on {done:,} of {of:,}: others are known from an earlier run, or copies" if done < of else "",
    )
    Output(form, "auto", None).show(summary.summary(output), limit=limit)
    wrote(output / ("index.html" if pages else "summary.md"))
    return 0


@command.command("query")
@_folder("folder", metavar="DIR")
@click.argument("sql", metavar="SQL")
@_limit
@report_options
def _query(folder: Path, sql: str, limit: int, out: Output) -> int:
    """Print what a query over the tables of a run gives.

    DIR is the folder of a finished run. SQL is DuckDB's; its tables are modules, kernels, edges, suggestions
    and work."""
    out.show(summary.query(folder, sql), limit=limit)
    return 0


@command.command("diff")
@_folder("before")
@_folder("after")
@parameters(Check, "tolerance", "strict")
@limit_option(10, "Modules listed; 0 shows all.")
@report_options_with(CHECK_FORMATS, "Report format, as of hlofuse check.")
def _diff(before: Path, after: Path, tolerance: float, strict: bool, limit: int, out: Output) -> int:
    """Compare two runs: two nights, releases, devices or sets of options. What grew most comes first.

    Exit status 0: OK, 1: something grew, 2: wrong input or call."""
    found = compared(before, after, tolerance, strict)
    out.show_check(found, Path(), limit=limit)
    return 1 if found.data.failed else 0


@command.command("trend")
@_folder("folders", metavar="DIR...", nargs=-1, required=True)
@report_options
def _trend(folders: tuple[Path, ...], out: Output) -> int:
    """Print the totals of several runs, a line each."""
    out.show(summary.trend(folders), limit=0)
    return 0
