"""`hlofuse explore`: every decision in one HTML file to step through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, output_option
from hlofuse.cli.common.output import emit
from hlofuse.cli.common.progress import progress_bar, spinner
from hlofuse.cli.common.replaying import ReplayOptions, replay_options, warn
from hlofuse.cli.common.reporting import announce
from hlofuse.format.escape import printable
from hlofuse.format.units import listing

if TYPE_CHECKING:
    from hlofuse.account import Observed


@click.command("explore")
@input_argument
@click.argument("other", metavar="[OTHER]", required=False, type=click.Path())
@output_option("HTML file to write; - for standard output.")
@click.option(
    "--compare-device",
    metavar="D",
    shell_complete=completion.devices,
    help="Compare side by side with this device (of OTHER, if given).",
)
@click.option(
    "--compare-xla",
    metavar="V",
    shell_complete=completion.releases,
    help="Compare side by side with this jaxlib release (of OTHER, if given).",
)
@click.option(
    "--source",
    metavar="DIR|auto",
    help="Embed the Python files that the metadata names, from DIR or from the working directory."
    "  [default: no source]",
)
@click.option(
    "--timeline/--no-timeline",
    default=True,
    help="For a dump directory: add what every pass did, as in hlofuse timeline.",
)
@replay_options
def command(
    input: str,
    other: str | None,
    output: Path,
    compare_device: str | None,
    compare_xla: str | None,
    source: str | None,
    timeline: bool,
    **request: Any,
) -> None:
    """Write an HTML page with the kernels of INPUT and every fusion decision.

    One file, no network, no server. OTHER (a second dump), --compare-device or --compare-xla puts two modules
    side by side, differences first. With --set, --disable, --enable or --passes the page shows XLA's own
    result next to the changed one. For a dump directory it also shows what every pass did.
    """
    from hlofuse.cli.common.naming import final_names_of, unoptimized_of, with_events
    from hlofuse.explorer import page_html, page_of, passes_of, sequence_of

    options = ReplayOptions(input=input, **request)
    observed = options.run()
    announce(observed.replay)
    warn(observed.note)
    with_events(observed.replay)
    replays = _side_by_side(options, observed, other, compare_device, compare_xla)
    sequence = sequence_of(observed.replay.before) if timeline and Path(input).is_dir() else None
    passes = None
    if sequence is not None:
        with progress_bar("comparing dumps") as progress:
            passes = passes_of(sequence, observed.replay.before, progress)
    with spinner("writing"):
        page = page_of(replays, passes, final_names_of, unoptimized_of, source)
        html = page_html(page)
    if source is not None:
        embedded = listing([f.name for f in page.files if f.text], 5)
        warn(f"the page contains the text of {embedded or 'no source file'}")
    emit(html, output)


def _side_by_side(
    options: ReplayOptions, observed: Observed, other: str | None, device: str | None, release: str | None
) -> dict[str, Observed]:
    """The replays of the page, each under what distinguishes it from the other."""
    from hlofuse.releases import nearest

    if other is None and device is None and release is None:
        return {"as XLA": observed.xla, "what if": observed} if observed.xla else {"as XLA": observed}
    if release is not None:
        release, note = nearest(release)
        warn(note)
    if other is None:
        second = options.on_device(observed, device, release)
    else:
        device, release = device or options.device, release or options.xla
        second = replace(options, input=other, device=device, xla=release).run()
        announce(second.replay)
    return dict(zip(_labels(observed, second), (observed, second), strict=True))


def _labels(first: Observed, second: Observed) -> tuple[str, str]:
    """What differs, at most two of device, release and the parts of the path."""
    sides = []
    for replay in (first.replay, second.replay):
        path = Path(replay.before.filename or "").parts
        sides.append((replay.device or replay.target, f"XLA {replay.config.release.name}", *reversed(path)))
    pairs = [pair for pair in zip(*sides, strict=False) if pair[0] != pair[1]] or [("first", "second")]
    one, other = zip(*pairs[:2], strict=True)
    return printable(" · ".join(one)), printable(" · ".join(other))
