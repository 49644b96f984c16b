"""`hlofuse explain`: what XLA fuses, and what stops the rest."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import (
    input_argument,
    limit_option,
    name_argument,
    profile_option,
    report_options,
)
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import replay_options, report_on
from hlofuse.ir.errors import HlofuseError


@click.command("explain")
@input_argument
@name_argument
@click.option(
    "--pass", "only_pass", metavar="P", shell_complete=completion.one_pass, help="Only this pass's decisions."
)
@click.option("--computation", metavar="C", help="Only decisions in this computation.")
@limit_option(10, "Rows of each list; 0 for all.")
@click.option(
    "--compare-device",
    metavar="D",
    shell_complete=completion.devices,
    help="The same module on another device: what is decided there.",
)
@click.option("--only-refused", is_flag=True, help="Only what was not fused.")
@click.option(
    "--details", is_flag=True, help="Then every pass: what was fused and refused, and by which rule."
)
@profile_option
@replay_options
@report_options
def command(
    input: str,
    name: str | None,
    only_pass: str | None,
    computation: str | None,
    limit: int,
    compare_device: str | None,
    only_refused: bool,
    details: bool,
    out: Output,
    **request: Any,
) -> int:
    """Say what the module in INPUT runs, where the time goes, what fusion could still save and how.

    One screen: kernels, launches, time and bytes; the bounds of what is left to gain; changes that were tried
    on this module; the slowest kernels. --details adds, pass by pass, what was fused and what was refused,
    and by which rule.

    With NAME only the kernels that it means: a final name (what a profiler shows), a name at fusion or before
    optimizations, a source line, model.py:42, or a part of an op_name, jit(f)/softmax.

    Of a module that is fused already: the kernels that are there, and what keeps each two of them apart.
    Of a module before optimizations: an approximate replay, which says so.
    Of a TPU's dumps: what was fused, and how CPU and GPU would have done.
    """
    if compare_device is not None and name is not None:
        raise HlofuseError("--compare-device is about the whole module: give it no NAME")
    report = report_on(input, request)
    if compare_device is not None:
        found = report.compare_device(compare_device)
    else:
        found = report.explain(
            name, only_pass=only_pass, computation=computation, only_refused=only_refused, details=details
        )
    out.show(found, limit=limit)
    return 0
