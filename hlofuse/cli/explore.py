"""`hlofuse explore`: every decision in one HTML file to step through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.options import input_argument
from hlofuse.cli.replaying import ReplayRequest, replay_options

if TYPE_CHECKING:
    from hlofuse.explainer.costs import Observed


@click.command("explore")
@input_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the page goes; - for standard output.",
)
@click.option("--compare-device", metavar="D", help="The same module on another device, side by side.")
@replay_options
def command(input: str, output: Path, compare_device: str | None, **request: Any) -> None:
    """Write a page that steps through every fusion decision about the module in INPUT.

    One HTML file that needs no network and no server. With --set, --disable, --enable or --passes it shows
    XLA's own result beside the changed one.
    """
    from hlofuse.cli.output import emit
    from hlofuse.cli.progress import spinner
    from hlofuse.explorer import page_html, page_of

    asked = ReplayRequest(input=input, **request)
    observed = asked.run()
    replays = _side_by_side(asked, observed, compare_device)
    with spinner("writing"):
        html = page_html(page_of(replays))
    emit(html, output)


def _side_by_side(asked: ReplayRequest, observed: Observed, other: str | None) -> dict[str, Observed]:
    """The replays of the page, each under what tells it from the others."""

    from hlofuse.present.escape import printable

    if other is not None:
        second = asked.on_device(observed, other)
        return {
            printable(observed.replay.device or "first"): observed,
            printable(second.replay.device or "second") + " (other)" * _same(observed, second): second,
        }
    if observed.xla is not None:
        return {"as XLA": observed.xla, "what if": observed}
    return {"as XLA": observed}


def _same(one: Observed, other: Observed) -> bool:
    return one.replay.device == other.replay.device
