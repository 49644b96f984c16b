"""`hlofuse render`: a module and its fusions as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument
from hlofuse.cli.common.output import write_file
from hlofuse.cli.common.progress import spinner
from hlofuse.cli.common.request import TERMINAL, announce, options_of, replay_options, warn
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.naming import drawn_name, renamed_kernels
from hlofuse.library.options import ReplayOptions
from hlofuse.library.side_by_side import pair_of_diff, read_both

if TYPE_CHECKING:
    from hlofuse.ir.graph import Module
    from hlofuse.render import ModulePair
    from hlofuse.replay import Replay

    _Drawn: TypeAlias = tuple[str | None, Module | Replay | ModulePair, list[str]]


@click.command("render")
@input_argument
@click.argument("after", metavar="[AFTER]", required=False, type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
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
@click.option(
    "--focus",
    metavar="NAME",
    shell_complete=completion.names,
    help="Draw only what lies around this instruction or computation; any name, also model.py:42.",
)
@click.option(
    "--radius", type=click.IntRange(0), default=2, show_default=True, metavar="N", help="How far around."
)
@click.option(
    "--open",
    "opened",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.names,
    help="Draw the inside of this fusion, computation or partN.",
)
@click.option(
    "--collapse",
    "collapsed",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.names,
    help="Draw a fusion or computation closed.",
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
    after: str | None,
    output: str,
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

    With AFTER, another module: both side by side and what became of what, by the numbers of AFTER's
    kernels; nothing is replayed.

    SVG, PNG and PDF need Graphviz: the dot program, or pip install 'hlofuse[render]'.
    """
    from hlofuse.render import ModulePair, format_of, render
    from hlofuse.render.engine import require_engine
    from hlofuse.replay import Replay

    to_stdout = output == "-"
    form = form or ("dot" if to_stdout else format_of(output))
    require_engine(form)
    replay_options_ = options_of(input, request)
    view, drawn, caption = (
        _replayed(replay_options_, view) if after is None else _pair(replay_options_, after, view)
    )
    if not isinstance(drawn, ModulePair):
        shown_view, shown = view or "after", drawn
        focus = drawn_name(shown, shown_view, focus, TERMINAL) if focus is not None else None
        opened = tuple(drawn_name(shown, shown_view, name, TERMINAL) for name in opened)
        collapsed = tuple(drawn_name(shown, shown_view, name, TERMINAL) for name in collapsed)
    names = renamed_kernels(drawn) if isinstance(drawn, Replay) and view != "before" else {}
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
            final_names=names,
        )
        content = drawing.to_bytes(form)
    for notice in drawing.notices:
        click.echo(f"note: {notice}", err=True)
    if to_stdout:
        sys.stdout.buffer.write(content)
    else:
        write_file(Path(output), content)


def _replayed(options: ReplayOptions, view: str | None) -> _Drawn:
    """The view, what it is of, and what must be said first."""
    from hlofuse.inputs import stage_of
    from hlofuse.reports.common.unoptimized import BRIEF
    from hlofuse.reports.difference.model import difference_of
    from hlofuse.reports.difference.phrases import difference_lines

    loaded = options.read(any_stage=True)
    module, target = loaded.module, loaded.target
    if view is None and not options.takes_any_stage:
        stage = stage_of(module, target)
        fits = not stage.is_fused and not stage.foreign_to(target)
        view = "after" if fits and loaded.config is not None else "before"
        if fits and loaded.config is None:
            click.echo(f"note: drawn as it enters fusion; --device has {target} replayed", err=True)
    if view == "before":
        warn(loaded.device_note)
        announce(loaded, replayed=False)
        return view, module, []
    loaded = options.at_fusion_input(loaded)
    announce(loaded)
    caption = [BRIEF] if loaded.note else []
    warn(loaded.note)
    if not loaded.changes:
        return view, loaded.replay(), caption
    observed = loaded.observe()
    difference = difference_of(observed)
    return view, observed.replay, caption + (difference_lines(difference) if difference is not None else [])


def _pair(options: ReplayOptions, after: str, view: str | None) -> _Drawn:
    """Two modules as they are, and what of the one is what of the other."""
    from hlofuse.diff import diff

    given = [flag for flag in options.input_arguments[1:] if flag.startswith("--") and flag != "--module"]
    if given:
        raise HlofuseError(f"{given[0]} is about a replay; BEFORE AFTER are drawn as they are")
    modules = read_both(options.input, after, options.module, TERMINAL)
    with spinner("comparing"):
        return view or "both", pair_of_diff(diff(*modules)), []
