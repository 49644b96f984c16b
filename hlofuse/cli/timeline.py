"""`hlofuse timeline`: what each pass did."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common.options import limit_option, module_option, profile_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import TERMINAL


@click.command("timeline")
@click.argument("directory", metavar="DUMP_DIR", type=click.Path())
@click.option("--all", "every_module", is_flag=True, help="Show every module in the directory.")
@click.option("--every-dump", is_flag=True, help="Include dumps without a change.")
@limit_option(5, "Largest changes listed first; 0 for none.")
@module_option
@profile_option
@report_options
def command(
    directory: str, every_module: bool, module: str | None, profile: str | None, out: Output, **shown: Any
) -> int:
    """Show what each pass of a compilation did to the module, from the dumps in DUMP_DIR.

    For each pass: instructions and kernels before and after, rewrites, changes to
    fusions, and the time if file times show it. Unreadable dumps are listed and skipped.
    """
    from hlofuse.library.passes import timelines_of

    found = timelines_of(directory, module, every_module, TERMINAL, profile)
    out.show(found, **shown)
    return 0
