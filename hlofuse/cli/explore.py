"""`hlofuse explore`: every decision in one HTML file to step through."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common.options import input_argument, measured_options, option, output_option
from .common.output import emit
from .common.request import announce, report_on

if TYPE_CHECKING:
    from hlofuse.library.report import Report


@click.command("explore")
@input_argument
@click.argument("other", metavar="[OTHER]", required=False, type=click.Path())
@output_option("HTML file to write; - for standard output.")
@option("--compare-device", "D", "Show OTHER, or INPUT again, on this device, side by side.")
@option(
    "--compare-xla",
    "V",
    "Show OTHER, or INPUT again, by this release of jaxlib, side by side.",
)
@option(
    "--source",
    "DIR|auto",
    (
        "Add the Python files that the metadata names, from DIR or, with auto, from the working directory."
        "  [default: no source]"
    ),
)
@click.option(
    "--timeline/--no-timeline",
    default=True,
    help="For a dump directory: add what every pass did, as in hlofuse timeline.",
)
@measured_options
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
    result next to the changed one. For a dump directory it also shows what every pass did."""
    report, second = _announced(report_on(input, request)), None
    if other is not None:
        of_other = {"device": compare_device or request["device"], "xla": compare_xla or request["xla"]}
        second = _announced(report_on(other, {**request, **of_other}))
        compare_device = compare_xla = None
    page = report.explore(
        second, compare_device=compare_device, compare_xla=compare_xla, source=source, timeline=timeline
    )
    emit(page, output)


def _announced(report: "Report") -> "Report":
    """The report, that of XLA:TPU's final module where it is next to another, after printing its head."""
    from hlofuse.library.reasons import final_of_tpu

    report = final_of_tpu(report) or report
    if report.is_taken_as_it_is:
        announce(report.loaded, replayed=False)
    else:
        announce(report.replay)
    return report
