"""`hlofuse render` and `plot`: pictures of a module and of what the fusion passes did."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.format import printable
from hlofuse.ir import HlofuseError, Strings
from hlofuse.library.drawing import shown_view
from hlofuse.library.side_by_side import pair_of
from hlofuse.render import ModulePair, format_of, render
from hlofuse.render.drawing import FORMATS, engine
from .common.messages import spinner
from .common.options import INPUT, flag, input_argument, option, output_option, replay_options
from .common.output import emit
from .common.request import announce, report_on, warn

if TYPE_CHECKING:
    from hlofuse.library.report import Report


@click.command("render")
@input_argument
@click.argument("after", metavar="[AFTER]", required=False, type=INPUT)
@option(
    "-o --output",
    "FILE",
    "File to write: .svg, .png, .pdf or .dot; - for standard output.",
    required=True,
    type=click.Path(),
)
@option(
    "--format form",
    FORMATS,
    "Format, whatever the suffix.  [default for standard output: dot]",
)
@option(
    "--view",
    ["before", "after", "both"],
    (
        "Draw the module before fusion, after fusion, or both side by side.  [default: after; before for a"
        " fused module]"
    ),
)
@option(
    "--focus",
    "NAME",
    "Draw only the neighbourhood of this instruction or computation; any name, also model.py:42.",
)
@option("--radius", "N", "Distance from --focus in edges.", default=2, type=click.IntRange(0))
@option("--open opened", "NAME", "Expand this fusion, computation or partN.", multiple=True)
@option(
    "--max-nodes",
    "N",
    "Maximum boxes per side; the rest is collapsed.",
    default=250,
    type=click.IntRange(1, 1500),
)
@flag("--no-legend", "Leave the legend out.")
@replay_options
def render_command(
    input: str,
    after: str | None,
    output: str,
    form: str | None,
    view: str | None,
    focus: str | None,
    radius: int,
    opened: Strings,
    max_nodes: int,
    no_legend: bool,
    **request: Any,
) -> None:
    """Draw the module in INPUT and its fusions: one frame per kernel, bytes on the edges.

    With AFTER, a second module, both are drawn side by side, numbered by AFTER's kernels: files as they are,
    directories as their final modules.

    An SVG fits the window of a browser; the wheel zooms and dragging pans. Of a large module --focus draws
    the neighbourhood of one kernel."""
    form = form or ("dot" if output == "-" else format_of(output))
    if form != "dot":
        engine()  # what is missing is reported before the replay for the picture
    report = report_on(input, request)
    pair = None if after is None else _pair(report, after)
    if pair is None:
        view = shown_view(report, view)
        if view == "before":  # the module as it is
            warn(report.loaded.device_note)
            announce(report.loaded, replayed=False)
        else:
            announce(report.at_fusion)
    draw = report.render if pair is None else partial(render, pair)
    drawing = draw(
        view if pair is None else view or "both",
        max_nodes=max_nodes,
        focus=focus,
        radius=radius,
        open=opened,
        legend=not no_legend,
    )
    with spinner("drawing"):
        content = drawing.to_bytes(form)
    for notice in drawing.notices:
        warn(notice)
    emit(content, Path(output))


def _pair(report: "Report", after: str) -> ModulePair:
    options = report.options
    given = [flag for flag in options.input_arguments[1:] if flag.startswith("--") and flag != "--module"]
    if given:
        raise HlofuseError(f"{given[0]} needs a replay, but BEFORE and AFTER are drawn as they are")
    with spinner("comparing"):
        return pair_of(report, report_on(after, {"module": options.module}))


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
def plot_command(input: str, output: Path, kind: str, **request: Any) -> None:
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
