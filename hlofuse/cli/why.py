"""`hlofuse why`: the decisions about one instruction or two."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, limit_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import measured_options, report_on


@click.command("why")
@input_argument
@click.argument("name", metavar="NAME", shell_complete=completion.names)
@click.argument("other", metavar="[NAME]", required=False, shell_complete=completion.names)
@limit_option(20, "Decisions listed; 0 shows all.")
@measured_options
@report_options
def command(input: str, name: str, other: str | None, limit: int, out: Output, **request: Any) -> int:
    """Explain why two instructions were fused or not; with one NAME, every decision about it.

    NAME is any name, with or without %: before fusion, of a new fusion, of XLA's final module (as in
    a profiler), a source line, model.py:42, or part of an op_name, jit(f)/softmax. If several
    instructions match, all are explained; for two NAMEs, all adjacent pairs.
    """
    out.show(report_on(input, request).why(name, other), limit=limit)
    return 0
