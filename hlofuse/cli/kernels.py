"""`hlofuse kernels`: who runs each kernel that fusion leaves, and why."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common.options import input_argument, limit_option, name_argument, option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import measured_options, report_on


@click.command("kernels")
@input_argument
@name_argument
@limit_option(20, "Kernels shown; 0 shows all.")
@option("--sort", ["cost", "module"], "Slowest kernels first, or in the order of the module.", default="cost")
@measured_options
@report_options
def command(input: str, name: str | None, limit: int, sort: str, out: Output, **request: Any) -> int:
    """List the kernels of INPUT after fusion: who generates each, by which rule, and its launch dimensions.

    A module before fusion is replayed first; a fused or fully optimized one is
    taken as it is. NAME selects kernels: a final name (as in a profiler), a name at the
    fusion input or before optimizations, a source line, model.py:42, or part of an op_name, jit(f)/softmax.
    """
    out.show(report_on(input, request).kernels_of(name), limit=limit, sort=sort)
    return 0
