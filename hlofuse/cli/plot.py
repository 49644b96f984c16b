"""`hlofuse plot`: the effect of the fusion passes in charts."""

import sys
from pathlib import Path
from typing import Any

import click

from hlofuse.cli.common.messages import spinner
from hlofuse.cli.common.options import input_argument, option, output_option, replay_options
from hlofuse.cli.common.output import save
from hlofuse.cli.common.request import announce, report_on, warn
from hlofuse.render import format_of
from hlofuse.render.drawing import require_engine

KINDS = ("passes", "kernels", "roofline")


@click.command("plot")
@input_argument
@output_option("File to write: .svg, .png, .pdf or .dot; - for standard output (DOT).")
@option(
    "--kind",
    KINDS,
    "Totals after each pass, kernel times before and after fusion, or all kernels' roofline (GPU).",
    default="passes",
)
@replay_options
def command(input: str, output: Path, kind: str, **request: Any) -> None:
    """Plot the effect of the fusion passes on the module in INPUT.

    Times come from XLA's cost model on GPU targets; other targets show bytes.
    SVG needs no Graphviz.
    """

    to_stdout = str(output) == "-"
    form = "dot" if to_stdout else format_of(output)
    if form != "svg":
        require_engine(form)
    report = report_on(input, request)
    announce(report.at_fusion)
    warn(report.at_fusion.note)
    with spinner("plotting"):
        content = report.plot(kind).to_bytes(form)
    if to_stdout:
        sys.stdout.buffer.write(content)
    else:
        save(output, content)
