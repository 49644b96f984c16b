"""`hlofuse why`: the decisions about one instruction or two."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, limit_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import replay_options, report_on


@click.command("why")
@input_argument
@click.argument("name", metavar="NAME", shell_complete=completion.names)
@click.argument("other", metavar="[NAME]", required=False, shell_complete=completion.names)
@limit_option(20, "Decisions listed; 0 for all.")
@replay_options
@report_options
def command(
    input: str,
    name: str,
    other: str | None,
    limit: int,
    out: Output,
    **request: Any,
) -> int:
    """Why two instructions were fused, or were not; with one NAME, its whole story.

    NAME is any name, with or without %: of a dump before fusion, of a new fusion, of XLA's final module (what
    a profiler shows), a source line, model.py:42, or a part of an op_name, jit(f)/softmax. Where several
    things have it, all are answered; of two NAMEs the pairs that are neighbours.
    """
    out.show(report_on(input, request).why(name, other), limit=limit)
    return 0
