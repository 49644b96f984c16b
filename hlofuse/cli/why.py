"""`hlofuse why`: the decisions about one instruction or two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common import completion
from hlofuse.cli.common.messages import say
from hlofuse.cli.common.options import input_argument, limit_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.replaying import ReplayOptions, replay_options
from hlofuse.cli.common.reporting import head_of
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlofuse.account import Observed
    from hlofuse.reports.why.story import Answer


@click.command("why")
@input_argument
@click.argument("name", metavar="NAME", shell_complete=completion.names)
@click.argument("other", metavar="[NAME]", required=False, shell_complete=completion.names)
@limit_option(20, "Decisions listed; 0 shows all.")
@replay_options
@report_options
def command(
    input: str,
    name: str,
    other: str | None,
    limit: int,
    out: Output,
    **request: Any,
) -> int:
    """Explain why two instructions were fused or not; with one NAME, every decision about it.

    NAME is any name, with or without %: before fusion, of a new fusion, of XLA's final module (as in
    a profiler), a source line, model.py:42, or part of an op_name, jit(f)/softmax. If several
    instructions match, all are explained; for two NAMEs, all adjacent pairs.
    """
    from hlofuse.cli.common.naming import final_names_of, unoptimized_of, with_events
    from hlofuse.reports.difference.model import difference_of
    from hlofuse.reports.why.confirm import confirmed
    from hlofuse.reports.why.json import answers_json
    from hlofuse.reports.why.story import answers
    from hlofuse.reports.why.text import print_answers

    options = ReplayOptions(input=input, **request)
    observed = options.run()
    queries = (name,) if other is None else (name, other)
    with_events(observed.replay)
    by_own_names = _by_own_names(observed, name, other)
    names = final_names_of(observed.replay)
    found = by_own_names or answers(
        observed.replay,
        name,
        other,
        costs=observed.costs,
        names=names,
        unoptimized=lambda: unoptimized_of(observed.replay),
    )
    found = confirmed(found, observed, lambda change: options.with_change(observed, change))
    difference = difference_of(observed)
    out.report(
        text=lambda console: print_answers(
            found, queries, console, input_arguments=options.input_arguments, limit=limit
        ),
        json=lambda: answers_json(found, queries),
        note=observed.note,
        heads=[head_of(observed.replay, names=names)],
        differences=[difference] if difference is not None else [],
        limit=limit,
    )
    return 0


def _by_own_names(observed: Observed, name: str, other: str | None) -> list[Answer]:
    """The answer by names of the input, for names of XLA's own run that mean nothing under other settings.

    A note says so. Empty where the names have an answer as they are.
    """
    from hlofuse.cli.common.naming import final_names_of
    from hlofuse.reports.why.story import answers, in_the_input

    if observed.xla is None:
        return []
    try:
        if _has_answer(answers(observed.replay, name, other)):
            return []
    except HlofuseError:
        pass
    queries = (name,) if other is None else (name, other)
    try:
        names = final_names_of(observed.xla.replay)
        own = [names.names_at_fusion.get(n.strip().lstrip("%"), n) for n in queries]
        translated = in_the_input(own, observed.xla.replay)
        found = answers(observed.replay, *translated, costs=observed.costs)
    except HlofuseError:
        return []
    if not _has_answer(found):
        return []
    shown = printable(" and ".join(translated))
    say("note", f"these settings change the numbers in fusion names; explaining {shown}")
    return found


def _has_answer(found: Sequence[Answer]) -> bool:
    from hlofuse.reports.why import PairAnswer

    return any(not isinstance(a, PairAnswer) or a.outcome != "apart" for a in found)
