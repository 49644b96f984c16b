"""`hlofuse stats`: modules in figures."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common.options import limit_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import replay_options, report_on


@click.command("stats")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", type=click.Path(allow_dash=True))
@click.option("--after", is_flag=True, help="Replay the fusion passes first: what they leave.")
@replay_options
@limit_option(10, "Heaviest kernels shown; 0 for all.")
@report_options
def command(
    inputs: tuple[str, ...],
    after: bool,
    limit: int,
    out: Output,
    **request: Any,
) -> int:
    """Instructions, kernels, fusions, flops and bytes of modules of any stage.

    Flops and bytes are of all launches: loops count as often as they run, where the module tells. From a
    dump directory the module is taken as it enters the fusion passes; with --after, --set, --disable,
    --enable, --rules or --passes it is the module that those passes leave.
    """
    from hlofuse.library.report import statistics_of

    found = statistics_of([report_on(path, request) for path in inputs], after)
    out.show(found, limit=limit)
    return 0
