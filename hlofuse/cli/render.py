"""`hlofuse render`: a module and its fusions as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.options import input_argument
from hlofuse.cli.replaying import ReplayRequest, replay_options

if TYPE_CHECKING:
    from hlofuse.ir.module import Module
    from hlofuse.pipelines import Replay


@click.command("render")
@input_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the picture goes: .svg, .png, .pdf or .dot; - for standard output.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png", "pdf", "dot"]),
    help="What to draw whatever the suffix is.  [standard output: dot]",
)
@click.option(
    "--view",
    type=click.Choice(["before", "after", "both"]),
    help="The module in INPUT, as the fusion passes leave it, or both side by side.  "
    "[default: after; before for a module that is fused already]",
)
@click.option("--focus", metavar="NAME", help="Draw only what lies around this instruction or computation.")
@click.option(
    "--radius", type=click.IntRange(0), default=2, show_default=True, metavar="N", help="How far around."
)
@click.option(
    "--open",
    "opened",
    multiple=True,
    metavar="NAME",
    help="Draw the inside of this fusion, computation or partN.",
)
@click.option(
    "--collapse", "collapsed", multiple=True, metavar="NAME", help="Draw a fusion or computation closed."
)
@click.option(
    "--max-nodes",
    type=click.IntRange(1, 1500),
    default=250,
    show_default=True,
    metavar="N",
    help="Boxes a side; what does not fit is collapsed.",
)
@click.option("--no-legend", is_flag=True, help="Leave the legend out.")
@replay_options
def command(
    input: str,
    output: Path,
    form: str | None,
    view: str | None,
    focus: str | None,
    radius: int,
    opened: tuple[str, ...],
    collapsed: tuple[str, ...],
    max_nodes: int,
    no_legend: bool,
    **request: Any,
) -> None:
    """Draw the module in INPUT and its fusions: one frame a kernel, bytes on the arrows.

    SVG, PNG and PDF need Graphviz: the dot program, or pip install 'hlofuse[render]'.
    """
    from hlofuse.cli.output import write_file
    from hlofuse.cli.progress import spinner
    from hlofuse.explainer.difference import difference_of
    from hlofuse.explainer.difference_words import difference_lines
    from hlofuse.inputs import require_input_stage, stage_of
    from hlofuse.inputs.stage import INPUT
    from hlofuse.renderer import format_of, render
    from hlofuse.renderer.engine import engine

    to_stdout = str(output) == "-"
    form = form or ("dot" if to_stdout else format_of(output))
    if form != "dot":
        engine()  # nobody should wait for a replay only to hear that nothing can draw it
    asked = ReplayRequest(input=input, **request)
    subject = asked.read(any_stage=True)
    module, target = subject.module, subject.target
    if (view in ("after", "both") or asked.changes_xla) and not asked.assume_input:
        require_input_stage(module, target)
    if view is None and not (asked.assume_input or asked.changes_xla):
        stage = stage_of(module, target)
        fits = stage.name == INPUT and target.startswith(stage.platform or target)
        view = "after" if fits and subject.variant is not None else "before"
    drawn: Module | Replay = module
    caption: list[str] = []
    if view != "before" and subject.changes:
        observed = subject.observe()
        drawn, difference = observed.replay, difference_of(observed)
        caption = difference_lines(difference) if difference is not None else []
    elif view != "before":
        drawn = subject.replay()
    with spinner("drawing"):
        drawing = render(
            drawn,
            view,
            max_nodes=max_nodes,
            focus=focus,
            radius=radius,
            open=opened,
            collapse=collapsed,
            legend=not no_legend,
            caption=caption,
        )
        content = drawing.to_bytes(form)
    for notice in drawing.notices:
        click.echo(f"note: {notice}", err=True)
    if to_stdout:
        sys.stdout.buffer.write(content)
    else:
        write_file(output, content)
