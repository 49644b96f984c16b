"""`hlofuse plot`: what the fusion passes do, as figures to look at."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.options import input_argument, output_option
from hlofuse.cli.common.output import write_file
from hlofuse.cli.common.progress import spinner
from hlofuse.cli.common.request import announce, options_of, replay_options, warn
from hlofuse.library.options import Loaded

if TYPE_CHECKING:
    from hlofuse.plot.figure import Plot

KINDS = ("passes", "kernels", "roofline")


@click.command("plot")
@input_argument
@output_option("Where the plot goes: .svg, .png, .pdf or .dot; - for standard output (DOT).")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="passes",
    show_default=True,
    help="Kernels, bytes and time after each pass; what each kernel takes before and after;"
    " the roofline (GPU).",
)
@replay_options
def command(input: str, output: Path, kind: str, **request: Any) -> None:
    """Plot what the fusion passes make of the module in INPUT.

    Times are by XLA's own model, on GPU targets; elsewhere bytes stand for them.
    """
    from hlofuse.render import format_of
    from hlofuse.render.engine import require_engine

    to_stdout = str(output) == "-"
    form = "dot" if to_stdout else format_of(output)
    require_engine(form)
    loaded = options_of(input, request).read()
    announce(loaded)
    warn(loaded.note)
    with spinner("plotting"):
        content = _plot(loaded, kind).to_bytes(form)
    if to_stdout:
        sys.stdout.buffer.write(content)
    else:
        write_file(output, content)


def _plot(loaded: Loaded, kind: str) -> Plot:
    from hlofuse.account import Account, KernelTimes
    from hlofuse.ir import HlofuseError
    from hlofuse.library.naming import final_names_of
    from hlofuse.replay import ModuleTexts
    from hlofuse.reports.common.final_names import LaunchedNames
    from hlofuse.reports.common.unoptimized import BRIEF
    from hlofuse.reports.difference.phrases import warning_line

    device = loaded.config.device if loaded.config is not None else None
    if kind == "roofline" and device is None:
        raise HlofuseError("the roofline is a GPU's: it asks for --device (hlofuse devices lists them)")
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
