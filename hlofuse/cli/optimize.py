"""`hlofuse optimize`: a better order of passes or XLA flags, measured in what runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.ir.text.printer import print_module
from hlofuse.library.optimizing import optimized
from hlofuse.library.questions import Optimize
from .common.options import FILE, option
from .common.output import Output, emit
from .common.questions import command_of

if TYPE_CHECKING:
    from hlofuse.library.report import Report


def _run(reports: "Sequence[Report]", options: Optimize, out: Output, write: Path | None) -> int:
    found = optimized(reports[0], options)
    if write is not None:
        emit(print_module(found.data.module), write)
    out.show(found)
    return 0


command = command_of(
    "optimize",
    option("--write", "OUT.hlo", "Write the best module.", type=FILE),
    run=_run,
)
