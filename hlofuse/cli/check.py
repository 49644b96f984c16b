"""`hlofuse check`: fusion against a budget or a stored baseline, for CI."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.format import printable
from hlofuse.ir import HlofuseError, Strings
from hlofuse.library.questions import Check
from .common.options import flag, option, report_options_with
from .common.output import CHECK_FORMATS, Output, save
from .common.questions import command_of
from .common.request import warn

if TYPE_CHECKING:
    from hlofuse.library.report import Report


def _run(
    programs: "Sequence[Report]",
    options: Check,
    out: Output,
    update: bool,
    exit_zero: bool,
    reports: Strings,
) -> int:
    """Exit status 1 if something broke; writes the baseline and the reports that options name."""
    from hlofuse.library.measuring import checked

    further = []
    for word in reports:
        form, _, name = word.partition("=")
        if form not in CHECK_FORMATS or not name:
            formats = ", ".join(CHECK_FORMATS)
            raise HlofuseError(
                f"--report {printable(word)}: expected FORMAT=FILE with FORMAT one of {formats}"
            )
        further.append((form, Path(name)))
    root = Path(options.root)
    found, files = checked([p.options for p in programs], options, update)
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        save(file, text)
    if out.form not in ("text", "json", "markdown"):  # those say it themselves
        for note in found.data.notes:
            warn(note)
    for kind, file in further:
        Output(kind, "never", file).show_check(found, root)
    out.show_check(found, root)
    return 1 if found.data.failed and not exit_zero else 0


command = command_of(
    "check",
    flag("--update", "Write the current state as the baseline."),
    flag("--exit-zero", "Report failures, but exit with 0."),
    option(
        "--report reports",
        "FORMAT=FILE",
        "Write another report, such as sarif=fusion.sarif; repeatable.",
        multiple=True,
    ),
    output=report_options_with(
        CHECK_FORMATS, "Report format: github annotates source lines, markdown fits a job summary."
    ),
    run=_run,
)
