"""`hlofuse stats`: modules in figures."""

from __future__ import annotations

from pathlib import Path

import click

from hlofuse.cli.options import module_option, report_options


@click.command("stats")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", type=click.Path(allow_dash=True))
@module_option
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
    inputs: tuple[str, ...], module: str | None, limit: int, form: str, color: str, output: Path | None
) -> int:
    """Instructions, kernels, fusions, flops and bytes of modules of any stage.

    Flops and bytes are counted as XLA's HloCostAnalysis does: a loop counts as one turn of it. From a
    dump directory the module is taken as it enters the fusion passes.
    """
    from hlofuse.cli.output import emit, rendered
    from hlofuse.cli.progress import spinner
    from hlofuse.explainer.statistics import statistics
    from hlofuse.inputs import load

    # A list in JSON is complete: --limit is for people.
    heaviest = None if form == "json" else limit or None
    with spinner("reading"):
        found = [statistics(load(path, module), heaviest=heaviest) for path in inputs]
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
