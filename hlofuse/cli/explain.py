"""`hlofuse explain`: what XLA fuses, and what stops the rest."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.options import input_argument, limit_option, name_argument, option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import measured_options, report_on
from hlofuse.ir.errors import HlofuseError


@click.command("explain")
@input_argument
@name_argument
@option("--pass only_pass", "P", "Only this pass's decisions.", completion.one_pass)
@click.option("--computation", metavar="C", help="Only decisions in this computation.")
@limit_option(10, "Rows in each list; 0 shows all.")
@option("--compare-device", "D", "Also replay on this device and compare the decisions.", completion.devices)
@click.option("--only-refused", is_flag=True, help="Only refused fusions.")
@click.option(
    "--details", is_flag=True, help="Add every pass: what was fused and refused, and by which rule."
)
@measured_options
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
    """Explain the module in INPUT: its kernels, their time, what fusion could still save and how.

    One screen: kernels, launches, time and bytes; bounds on the possible saving; changes that were tried
    on this module; the slowest kernels. --details adds, pass by pass, what was fused and refused,
    and by which rule.

    NAME selects kernels: a final name (as in a profiler), a name at the fusion input or before
    optimizations, a source line, model.py:42, or a part of an op_name, jit(f)/softmax.

    A fused module: its kernels, and why each pair of them was not fused.
    A module before optimizations: an approximate replay, marked as such.
    A TPU dump: what was fused, and what CPU and GPU would fuse.
    """
    if compare_device is not None and name is not None:
        raise HlofuseError("--compare-device compares whole modules and takes no NAME")
    report = report_on(input, request)
    if compare_device is not None:
        out.show(report.compare_device(compare_device), limit=limit)
        return 0
    found = report.explain(
        name, only_pass=only_pass, computation=computation, only_refused=only_refused, details=details
    )
    out.show(found, limit=limit, hint=True)
    return 0
