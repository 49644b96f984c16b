"""`hlofuse kernels`: who runs each kernel that fusion leaves, and why."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common.options import (
    input_argument,
    limit_option,
    name_argument,
    profile_option,
    report_options,
)
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import replay_options, report_on


@click.command("kernels")
@input_argument
@name_argument
@limit_option(20, "Kernels shown; 0 for all.")
@click.option(
    "--sort",
    type=click.Choice(["cost", "module"]),
    default="cost",
    show_default=True,
    help="Slowest kernels first, or in the order of the module.",
)
@profile_option
@replay_options
@report_options
def command(
    input: str,
    name: str | None,
    limit: int,
    sort: str,
    out: Output,
    **request: Any,
) -> int:
    """Tell who runs each kernel that fusion leaves in INPUT, by which rule, and how it is launched.

    A module from before fusion is replayed first; one that is fused already, or optimised to the end, is
    taken as it is. With NAME only the kernels that it means: a final name (what a profiler shows), a name at
    fusion or before optimizations, a source line, model.py:42, or a part of an op_name, jit(f)/softmax.
    """
    out.show(report_on(input, request).kernels_of(name), limit=limit, sort=sort)
    return 0
