"""`hlofuse stats`: modules in figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.options import report_options
from hlofuse.cli.replaying import ReplayRequest, replay_options

if TYPE_CHECKING:
    from hlofuse.ir.module import Module


@click.command("stats")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", type=click.Path(allow_dash=True))
@click.option("--after", is_flag=True, help="Replay the fusion passes first: what they leave.")
@replay_options
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Heaviest kernels shown; 0 for all.",
)
@report_options
def command(
    inputs: tuple[str, ...],
    after: bool,
    limit: int,
    form: str,
    color: str,
    output: Path | None,
    **request: Any,
) -> int:
    """Instructions, kernels, fusions, flops and bytes of modules of any stage.

    Flops and bytes are counted as XLA's HloCostAnalysis does: a loop counts as one turn of it. From a
    dump directory the module is taken as it enters the fusion passes; with --after, --set, --disable,
    --enable or --passes it is the module that those passes leave.
    """
    from hlofuse.cli.output import emit, rendered
    from hlofuse.cli.progress import spinner
    from hlofuse.explainer.statistics import statistics

    requests = [ReplayRequest(input=path, **request) for path in inputs]
    # A list in JSON is complete: --limit is for people.
    heaviest = None if form == "json" else limit or None
    with spinner("reading"):
        found = [statistics(_module(r, after or r.changes_xla), heaviest=heaviest) for r in requests]
    if form == "json":
        import json

        from hlofuse.explainer.statistics_json import statistics_json

        emit(json.dumps(statistics_json(found), indent=2), output)
    elif form == "markdown":
        from hlofuse.explainer.statistics_markdown import statistics_markdown

        emit(statistics_markdown(found), output)
    else:
        from hlofuse.explainer.statistics_text import print_statistics

        emit(rendered(lambda console: print_statistics(found, console), color, output), output)
    return 0


def _module(request: ReplayRequest, after: bool) -> Module:
    subject = request.read(any_stage=not after)
    return subject.replay().after if after else subject.module
