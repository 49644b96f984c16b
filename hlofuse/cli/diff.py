"""`hlofuse diff`: what changed between two modules, fusion by fusion."""

from __future__ import annotations

from pathlib import Path

import click

from hlofuse.cli.options import module_option, report_options

SECTIONS = ("fusions", "sources", "instructions", "header")  # `differ.report.sections`, without the import


@click.command("diff")
@click.argument("before", metavar="BEFORE", type=click.Path(allow_dash=True))
@click.argument("after", metavar="AFTER", type=click.Path(allow_dash=True))
@report_options
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Entries in each list; 0 for all.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(SECTIONS),
    help="Report on this part only; may be given more than once. JSON always has all.",
)
@click.option("-q", "--quiet", is_flag=True, help="Report nothing; the exit status tells.")
@click.option("--metadata", is_flag=True, help="Count op_name and source lines as differences.")
@module_option
def command(
    before: str,
    after: str,
    form: str,
    color: str,
    output: Path | None,
    limit: int,
    only: tuple[str, ...],
    quiet: bool,
    metadata: bool,
    module: str | None,
) -> int:
    """Say what AFTER does differently from BEFORE: fusions first, then instructions.

    Any two modules: before and after a pass, two XLA releases, two devices, two versions of a
    program. Instructions are matched by structure; names, numbers and order are never a difference.

    Exit status 0: the same, 1: different, 2: trouble.
    """
    from hlofuse.cli.output import emit, rendered
    from hlofuse.cli.progress import spinner
    from hlofuse.cli.side_by_side import read_both
    from hlofuse.differ import diff

    modules = read_both(before, after, module)
    with spinner("comparing"):
        found = diff(*modules, metadata=metadata)
    if not quiet:
        from hlofuse.differ.report.summary import summarize

        chosen = only or SECTIONS
        if form == "json":
            from hlofuse.differ.report.json_report import to_json

            text = to_json(found)
        elif form == "markdown":
            from hlofuse.differ.report.markdown import to_markdown

            text = to_markdown(summarize(found), limit=limit, only=chosen)
        else:
            from hlofuse.differ.report.text import draw

            summary = summarize(found)
            text = rendered(lambda console: draw(summary, console, limit=limit, only=chosen), color, output)
        emit(text, output)
    return 0 if found.same else 1
