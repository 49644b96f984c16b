"""`hlofuse explore`: every decision in one HTML file to step through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, output_option
from hlofuse.cli.common.output import emit
from hlofuse.cli.common.progress import progress_bar, spinner
from hlofuse.cli.common.request import announce, options_of, replay_options, warn
from hlofuse.format.escape import printable
from hlofuse.library.options import ReplayOptions

if TYPE_CHECKING:
    from hlofuse.account import Observed


@click.command("explore")
@input_argument
@output_option("Where the page goes; - for standard output.")
@click.option(
    "--compare-device",
    metavar="D",
    shell_complete=completion.devices,
    help="The same module on another device, side by side.",
)
@click.option(
    "--timeline/--no-timeline",
    default=True,
    help="For a dump directory: also what every pass of the compilation did (as `hlofuse timeline`).",
)
@replay_options
def command(input: str, output: Path, compare_device: str | None, timeline: bool, **request: Any) -> None:
    """Write a page that steps through every fusion decision about the module in INPUT.

    One HTML file that needs no network and no server. With --set, --disable, --enable or --passes it shows
    XLA's own result beside the changed one. Of a dump directory it also tells what every pass did.
    """
    from hlofuse.explorer import page_html, page_of, passes_of, sequence_of
    from hlofuse.library.naming import final_names_of, unoptimized_of, with_events

    options = options_of(input, request)
    observed = options.run()
    announce(observed.replay)
    warn(observed.note)
    with_events(observed.replay)
    replays = _side_by_side(options, observed, compare_device)
    sequence = sequence_of(observed.replay.before) if timeline and Path(input).is_dir() else None
    passes = None
    if sequence is not None:
        with progress_bar("comparing dumps") as progress:
            passes = passes_of(sequence, observed.replay.before, progress)
    with spinner("writing"):
        html = page_html(page_of(replays, passes, final_names_of, unoptimized_of))
    emit(html, output)


def _side_by_side(options: ReplayOptions, observed: Observed, other: str | None) -> dict[str, Observed]:
    """The replays of the page, each under what tells it from the others."""
    if other is not None:
        second = options.on_device(observed, other)
        return {
            printable(observed.replay.device or "first"): observed,
            printable(second.replay.device or "second") + " (other)" * _same(observed, second): second,
        }
    if observed.xla is not None:
        return {"as XLA": observed.xla, "what if": observed}
    return {"as XLA": observed}


def _same(one: Observed, other: Observed) -> bool:
    return one.replay.device == other.replay.device
