"""`hlofuse stats`: modules in figures."""

from __future__ import annotations

from typing import Any

import click

from hlofuse.cli.common.options import limit_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.request import measured_options, report_on


@click.command("stats")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", type=click.Path(allow_dash=True))
@click.option("--after", is_flag=True, help="Replay the fusion passes first and count the result.")
@measured_options
@limit_option(10, "Largest kernels shown; 0 shows all.")
@report_options
def command(inputs: tuple[str, ...], after: bool, limit: int, out: Output, **request: Any) -> int:
    """Count instructions, kernels, fusions, FLOP and bytes of modules at any stage.

    FLOP and bytes include all iterations of loops with a known trip count. In a
    dump directory the module before fusion is counted; with --after, --profile, --set, --disable,
    --enable, --rules or --passes, the module after the replayed passes.
    """
    from hlofuse.library.report import statistics_of

    found = statistics_of([report_on(path, request) for path in inputs], after)
    out.show(found, limit=limit)
    return 0
