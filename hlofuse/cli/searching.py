"""`hlofuse optimize` and `passes`: a better order of passes or XLA flags, measured in what runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from hlofuse.format import fields
from hlofuse.format.terminal import Rows
from hlofuse.ir import print_module
from hlofuse.library.optimizing import optimized
from hlofuse.library.questions import Optimize
from hlofuse.search.space import ACTIONS, Action
from .common.options import FILE, option, report_options
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


optimize_command = command_of(
    "optimize",
    option("--write", "OUT.hlo", "Write the best module.", type=FILE),
    run=_run,
)


@click.command("passes")
@report_options
def passes_command(out: Output) -> int:
    """List XLA's target-independent passes that optimize may run: kind, opcodes, how each was checked."""
    actions = list(ACTIONS.values())
    out.report(
        text=lambda console: _print(actions, console),
        json=lambda: {
            "schema": "hlofuse.passes/3",
            "passes": [fields(a, "name kind opcodes evidence") for a in actions],
        },
    )
    return 0


def _print(actions: list[Action], console: Console) -> None:
    table = Rows(
        ("pass", "name"), ("kind", "name"), ("opcodes", "left"), ("checked against", "name"), drop=(3, 1)
    )
    for a in actions:
        table.add_row(a.name, a.kind, ", ".join(a.opcodes) or "anything", a.evidence)
    table.print(console, 0)
