"""`hlofuse model-error`: XLA's estimates against measured time."""

from typing import Any

import click

from .common.options import INPUT, limit_option, measured_options, report_options
from .common.output import Output
from .common.request import report_on


@click.command("model-error")
@click.argument("first", metavar="PROFILE", type=click.Path())
@click.argument("second", metavar="[DUMP]", required=False, type=INPUT)
@limit_option(20, "Kernels shown; 0 shows all.")
@measured_options
@report_options
def command(first: str, second: str | None, limit: int, out: Output, **request: Any) -> int:
    """Compare XLA's estimate of each kernel with its time in PROFILE, worst first.

    PROFILE DUMP and DUMP --profile PROFILE mean the same.

    The kernels are those of the module in the profile, the costliest or --module; with DUMP those of its
    replay. On a GPU the estimate is that of XLA's time model, or of its measured rates of matrix products;
    library calls have a lower bound only. XLA:CPU has no time model: the bandwidth of the best kernel stands
    in for one, which shows the kernels that are slow for what they move."""
    if second is not None and request["profile"] is not None:
        raise click.UsageError("two profiles: give PROFILE DUMP, or DUMP --profile PROFILE")
    if second is not None:
        request["profile"] = first
    out.show(report_on(second or first, request).model_error, limit=limit)
    return 0
