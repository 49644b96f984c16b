"""`hlofuse plot`: the effect of the fusion passes in charts."""

from pathlib import Path
from typing import Any

import click

from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError
from .common.messages import spinner
from .common.options import input_argument, option, output_option, replay_options
from .common.output import emit
from .common.request import announce, report_on

KINDS = ("passes", "kernels", "memory")


@click.command("plot")
@input_argument
@output_option("SVG file to write; - for standard output.")
@option(
    "--kind",
    KINDS,
    "Totals after each pass, kernel times before and after fusion, or memory.",
    default="passes",
)
@replay_options
def command(input: str, output: Path, kind: str, **request: Any) -> None:
    """Plot the effect of the fusion passes on the module in INPUT, or its memory over the schedule.

    Times come from XLA's cost model on GPU targets; other targets show bytes."""
    if str(output) != "-" and output.suffix.lower() != ".svg":
        raise HlofuseError(f"a plot is an SVG: {printable(output.name)} has another suffix")
    report = report_on(input, request)
    if kind != "memory":
        announce(report.at_fusion)
    with spinner("plotting"):
        content = report.plot(kind).to_bytes()
    emit(content, output)
