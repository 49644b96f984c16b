"""`hlofuse timeline`: what each pass did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hlofuse.cli.common.options import limit_option, module_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.progress import progress_bar
from hlofuse.cli.common.reporting import head_of_dump

if TYPE_CHECKING:
    from rich.console import Console


@click.command("timeline")
@click.argument("directory", metavar="DUMP_DIR", type=click.Path())
@click.option("--all", "every_module", is_flag=True, help="Show every module in the directory.")
@click.option("--every-dump", is_flag=True, help="Include dumps without a change.")
@limit_option(5, "Largest changes listed first; 0 for none.")
@module_option
@report_options
def command(
    directory: str,
    every_module: bool,
    every_dump: bool,
    limit: int,
    module: str | None,
    out: Output,
) -> int:
    """Show what each pass of a compilation did to the module, from the dumps in DUMP_DIR.

    For each pass: instructions and kernels before and after, rewrites, changes to
    fusions, and the time if file times show it. Unreadable dumps are listed and skipped.
    """
    from hlofuse.reports.timeline import dump_sequences, timeline
    from hlofuse.reports.timeline.json import timeline_json
    from hlofuse.reports.timeline.text import print_sequences, print_timeline

    found = dump_sequences(directory, module)
    chosen = found if every_module or len(found) == 1 else []
    timelines = []
    for sequence in chosen:
        with progress_bar("comparing dumps") as progress:
            timelines.append(timeline(sequence, progress))

    def text(console: Console) -> None:
        for n, one in enumerate(timelines):
            if n:
                console.print()
            print_timeline(one, console, limit=limit, every=every_dump)
        if not timelines:
            print_sequences(found, console, path=directory)

    out.report(
        text=text,
        json=lambda: timeline_json(found, timelines),
        heads=[head_of_dump(sequence.dumps[0].path) for sequence in chosen],
    )
    return 0
