"""`hlofuse timeline`: what each pass did."""

from __future__ import annotations

import click

from hlofuse.cli.common.options import limit_option, module_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import TERMINAL


@click.command("timeline")
@click.argument("directory", metavar="DUMP_DIR", type=click.Path())
@click.option("--all", "every_module", is_flag=True, help="The film of every module in the directory.")
@click.option("--every-dump", is_flag=True, help="Also the dumps that show no change.")
@limit_option(5, "Largest changes shown ahead of the rest; 0 for none.")
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
    """What each pass of a compilation did to the module, told by the dumps in DUMP_DIR.

    For each pass: instructions and kernels before and after, what was rewritten into what, what became of
    fusions, and the time where file times show it. Dumps that cannot be read are named, and left out.
    """
    from hlofuse.library.passes import timelines_of

    found = timelines_of(directory, module, every_module, TERMINAL)
    out.show(found, limit=limit, every_dump=every_dump)
    return 0
