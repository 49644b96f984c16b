"""`hlofuse why`: the decisions about one instruction or two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.options import input_argument, limit_option, report_options
from hlofuse.cli.common.replaying import ReplayOptions, replay_options
from hlofuse.cli.common.reporting import head_of, report
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from hlofuse.account import Observed
    from hlofuse.reports.why import PairAnswer


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

    Names are those of the dump, of the result, or of fusions made on the way, with or without %; a line of
    the program, model.py:42, stands for the kernel that comes of it.
    """
    from hlofuse.reports.difference.model import difference_of
    from hlofuse.reports.why import why
    from hlofuse.reports.why.json import why_json
    from hlofuse.reports.why.markdown import why_markdown
    from hlofuse.reports.why.text import print_why

    options = ReplayOptions(input=input, **request)
    observed = options.run()
    answer = _pair_by_own_names(observed, name, other) or why(
        observed.replay, name, other, costs=observed.costs
    )
    difference = difference_of(observed)
    report(
        form,
        color,
        output,
        text=lambda console: print_why(answer, console, input_arguments=options.input_arguments, limit=limit),
        markdown=lambda: why_markdown(answer, limit=limit),
        json=lambda: why_json(answer),
        note=observed.note,
        heads=[head_of(observed.replay)],
        differences=[difference] if difference is not None else [],
        limit=limit,
    )
    return 0


def _pair_by_own_names(observed: Observed, name: str, other: str | None) -> PairAnswer | None:
    """Of two names from XLA's own run, with settings under which they mean nothing: the same pair by the
    names of the input, which a note tells; None where the names as they are will do."""
    from hlofuse.reports.why import PairAnswer
    from hlofuse.reports.why.story import in_the_input, why

    if observed.xla is None or other is None:
        return None
    try:
        answer = why(observed.replay, name, other)
        if not isinstance(answer, PairAnswer) or answer.outcome != "apart":
            return None
        first, second = in_the_input((name, other), observed.xla.replay)
        translated = why(observed.replay, first, second, costs=observed.costs)
    except HlofuseError:
        return None
    if not isinstance(translated, PairAnswer) or translated.outcome == "apart":
        return None
    names = printable(f"{first} and {second}")
    click.echo(f"note: fusions are numbered otherwise with these settings: asked about {names}", err=True)
    return translated
