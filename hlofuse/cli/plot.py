"""`hlofuse plot`: the effect of the fusion passes in charts."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.options import input_argument, output_option
from hlofuse.cli.common.output import save
from hlofuse.cli.common.progress import spinner
from hlofuse.cli.common.replaying import Loaded, ReplayOptions, replay_options, warn
from hlofuse.cli.common.reporting import announce

if TYPE_CHECKING:
    from hlofuse.plot.figure import Plot

KINDS = ("passes", "kernels", "roofline")


@click.command("plot")
@input_argument
@output_option("File to write: .svg, .png, .pdf or .dot; - for standard output (DOT).")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="passes",
    show_default=True,
    help="Totals after each pass, kernel times before and after fusion, or all kernels' roofline (GPU).",
)
@replay_options
def command(input: str, output: Path, kind: str, **request: Any) -> None:
    """Plot the effect of the fusion passes on the module in INPUT.

    Times come from XLA's cost model on GPU targets; other targets show bytes.
    SVG needs no Graphviz.
    """
    from hlofuse.render import format_of
    from hlofuse.render.engine import require_engine

    to_stdout = str(output) == "-"
    form = "dot" if to_stdout else format_of(output)
    if form != "svg":
        require_engine(form)
    loaded = ReplayOptions(input=input, **request).read()
    announce(loaded)
    warn(loaded.note)
    with spinner("plotting"):
        content = _plot(loaded, kind).to_bytes(form)
    if to_stdout:
        sys.stdout.buffer.write(content)
    else:
        save(output, content)


def _plot(loaded: Loaded, kind: str) -> Plot:
    from hlofuse.account import Account, KernelTimes
    from hlofuse.cli.common.naming import final_names_of
    from hlofuse.ir import HlofuseError
    from hlofuse.replay import ModuleTexts
    from hlofuse.reports.common.final_names import LaunchedNames
    from hlofuse.reports.common.unoptimized import BRIEF
    from hlofuse.reports.difference.phrases import warning_line

    device = loaded.config.device if loaded.config is not None else None
    if kind == "roofline" and device is None:
        raise HlofuseError("--kind roofline needs a GPU; give --device (hlofuse devices lists them)")
    replay = loaded.replay([ModuleTexts()] if kind == "passes" else [])
    times = KernelTimes(device, replay.config.release) if device is not None else None
    alerts: tuple[str, ...] = (warning_line(loaded.changes),) if loaded.changes else ()
    if loaded.note:
        alerts += (BRIEF,)
    title = f"{replay.target} fusion" + (f" on {replay.device}" if replay.device else "")
    if kind == "passes":
        from hlofuse.plot.bars import plot_passes

        return plot_passes(replay, times, alerts)
    labels = LaunchedNames(replay, final_names_of(replay)).shown()
    if kind == "kernels":
        from hlofuse.plot.bars import plot_kernels
        from hlofuse.render.options import pair_of

        final = replay.final
        backend = replay.config.build.backend
        account = times.account if times is not None else partial(Account, backend=backend)
        pair, before, after = pair_of(replay, title), account(replay.before), account(final.module)
        return plot_kernels(pair, before, after, final.names_at_fusion, title, alerts, labels=labels)
    from hlofuse.plot.roofline import plot_roofline

    assert times is not None
    return plot_roofline(replay.before, replay.final.module, times, title, alerts, labels)
