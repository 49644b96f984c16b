"""`hlofuse why`: the decisions about one instruction or two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hlofuse.cli.options import input_argument, limit_option, report_options
from hlofuse.cli.replaying import ReplayRequest, replay_options


@click.command("why")
@input_argument
@click.argument("name", metavar="NAME")
@click.argument("other", metavar="[NAME]", required=False)
@limit_option(20, "Decisions listed; 0 for all.")
@replay_options
@report_options
def command(
    input: str,
    name: str,
    other: str | None,
    limit: int,
    form: str,
    color: str,
    output: Path | None,
    **request: Any,
) -> int:
    """Why two instructions were fused, or were not; with one NAME, its whole story.

    Names are those of the dump, of the result, or of fusions made on the way, with or without %.
    """
    from hlofuse.cli.reporting import report
    from hlofuse.explainer.difference import difference_of
    from hlofuse.explainer.why import why
    from hlofuse.explainer.why.json_report import why_json
    from hlofuse.explainer.why.markdown import why_markdown
    from hlofuse.explainer.why.text import print_why

    asked = ReplayRequest(input=input, **request)
    observed = asked.run()
    answer = why(observed.replay, name, other, costs=observed.costs)
    difference = difference_of(observed)
    report(
        form,
        color,
        output,
        text=lambda console: print_why(answer, console, input_words=asked.input_words, limit=limit),
        markdown=lambda: why_markdown(answer, limit=limit),
        json=lambda: why_json(answer),
        remark=observed.remark,
        differences=[difference] if difference is not None else [],
        limit=limit,
    )
    return 0
