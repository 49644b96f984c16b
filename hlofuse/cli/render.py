"""`hlofuse render`: a module and its fusions as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.naming import drawn_name, final_names_of, renamed_kernels
from hlofuse.cli.common.options import input_argument
from hlofuse.cli.common.output import save
from hlofuse.cli.common.progress import spinner
from hlofuse.cli.common.replaying import ReplayOptions, replay_options, warn
from hlofuse.cli.common.reporting import announce
from hlofuse.cli.common.side_by_side import pair_of_diff, read_both
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from hlofuse.cli.common.replaying import Loaded
    from hlofuse.ir.graph import Module
    from hlofuse.render import ModulePair
    from hlofuse.render.launched import LaunchedModule
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
    help=(
        "File to write: .svg, .png, .pdf, .dot, .json (Model Explorer) or .trace.json.gz (Perfetto); - for"
        " standard output."
    ),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png", "pdf", "dot", "model-explorer", "perfetto"]),
    help="Format, whatever the suffix.  [default for standard output: dot]",
)
@click.option(
    "--view",
    type=click.Choice(["before", "after", "both"]),
    help=(
        "Draw the module before fusion, after fusion, or both side by side.  [default: after; before for a"
        " fused module]"
    ),
)
@click.option(
    "--focus",
    metavar="NAME",
    shell_complete=completion.names,
    help="Draw only the neighbourhood of this instruction or computation; any name, also model.py:42.",
)
@click.option(
    "--radius",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    metavar="N",
    help=("Distance from --focus in edges."),
)
@click.option(
    "--open",
    "opened",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.names,
    help="Expand this fusion, computation or partN.",
)
@click.option(
    "--collapse",
    "collapsed",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.names,
    help="Collapse this fusion or computation.",
)
@click.option(
    "--max-nodes",
    type=click.IntRange(1, 1500),
    default=250,
    show_default=True,
    metavar="N",
    help="Maximum boxes per side; the rest is collapsed.",
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
    """Draw the module in INPUT and its fusions: one frame per kernel, bytes on the edges.

    With AFTER, a second module, both are drawn side by side as they are, numbered by AFTER's
    kernels.

    An SVG fits the window of a browser; the wheel zooms and dragging pans. Of a large module --focus draws
    the neighbourhood of one kernel.

    For other viewers: --format model-explorer writes a graph whose layers are scopes, loops and fusions, and
    next to it FILE.node-data.json with the time of each kernel. --format perfetto writes the kernels of one
    step as a trace.
    """
    from hlofuse.render import ModulePair, format_of, render
    from hlofuse.render.drawing import VIEWERS
    from hlofuse.render.engine import require_engine
    from hlofuse.replay import Replay

    to_stdout = output == "-"
    form = form or ("dot" if to_stdout else format_of(output, viewers=True))
    if form in VIEWERS:
        if after is not None or view == "both":
            raise HlofuseError(f"{form} shows one module: leave out AFTER and --view both")
        if focus is not None or opened or collapsed:
            raise HlofuseError(f"--focus, --open and --collapse are about pictures; {form} has all kernels")
    else:
        require_engine(form)
    replay_options_ = ReplayOptions(input=input, **request)
    loaded = None if after is not None else replay_options_.read(any_stage=True)
    if loaded is None:
        assert after is not None
        view, drawn, caption = _pair(replay_options_, after, view)
    else:
        view, drawn, caption = _replayed(replay_options_, loaded, view)
    if form in VIEWERS:
        assert loaded is not None
        assert not isinstance(drawn, ModulePair)
        _write_for_viewer(_launched(loaded, drawn), form, output)
        return
    if not isinstance(drawn, ModulePair):
        shown_view, shown = view or "after", drawn
        focus = drawn_name(shown, shown_view, focus) if focus is not None else None
        opened = tuple(drawn_name(shown, shown_view, name) for name in opened)
        collapsed = tuple(drawn_name(shown, shown_view, name) for name in collapsed)
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
        warn(notice)
    if to_stdout:
        sys.stdout.buffer.write(content)
    else:
        save(Path(output), content)


def _launched(loaded: Loaded, drawn: Module | Replay) -> LaunchedModule:
    """What is launched: of a replay the final module."""
    from hlofuse.account import Account, KernelTimes
    from hlofuse.render.launched import LaunchedModule
    from hlofuse.replay import Replay
    from hlofuse.reports.common.final_names import LaunchedNames

    at_fusion: dict[str, str] = {}
    final: dict[str, str] = {}
    if isinstance(drawn, Replay):
        names = LaunchedNames(drawn, final_names_of(drawn))
        at_fusion = dict(drawn.final.names_at_fusion)
        drawn = drawn.final.module
        final = {i.name: names.of(i.name)[1] for i in drawn.instructions()}
    device = loaded.config.device if loaded.config is not None else None
    if device is not None:
        account = KernelTimes(device, loaded.release).account(drawn)
    else:
        account = Account(drawn, backend=loaded.target)
    title = f"{loaded.target} {device.name}" if device is not None else loaded.target
    return LaunchedModule(account, title, at_fusion, final)


def _write_for_viewer(launched: LaunchedModule, form: str, output: str) -> None:
    from hlofuse.render.model_explorer import to_model_explorer
    from hlofuse.render.perfetto import to_trace

    if form == "perfetto":
        content, how = to_trace(launched, output.endswith(".gz")), "open it at https://ui.perfetto.dev"
    else:
        content, data = to_model_explorer(launched)
        data_file = output.removesuffix(".json") + ".node-data.json"
        how = f"model-explorer {quote(output)} --node_data_paths={quote(data_file)}"
        if output != "-":
            save(Path(data_file), data, "the times of its nodes")
    if output == "-":
        sys.stdout.buffer.write(content)
    else:
        save(Path(output), content, how)


def _replayed(options: ReplayOptions, loaded: Loaded, view: str | None) -> _Drawn:
    """The view, its module or replay, and the lines of its head."""
    from hlofuse.inputs import stage_of
    from hlofuse.reports.common.unoptimized import BRIEF
    from hlofuse.reports.difference.model import difference_of
    from hlofuse.reports.difference.phrases import difference_lines

    module, target = loaded.module, loaded.target
    if view is None and not options.takes_any_stage:
        stage = stage_of(module, target)
        fits = not stage.is_fused and not stage.foreign_to(target)
        view = "after" if fits and loaded.config is not None else "before"
        if fits and loaded.config is None:
            warn(f"drawn before fusion; give --device to replay target {target}")
    if view == "before":
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
        raise HlofuseError(f"{given[0]} needs a replay, but BEFORE and AFTER are drawn as they are")
    modules = read_both(options.input, after, options.module)
    with spinner("comparing"):
        return view or "both", pair_of_diff(diff(*modules)), []
