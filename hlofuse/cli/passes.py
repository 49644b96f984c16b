"""`hlofuse passes`: the passes that `optimize` may run, in any order."""

import click
from rich.console import Console

from hlofuse.format.fields import fields
from hlofuse.format.terminal import Rows
from hlofuse.search.space import ACTIONS, Action
from .common.options import report_options
from .common.output import Output


@click.command("passes")
@report_options
def command(out: Output) -> int:
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
