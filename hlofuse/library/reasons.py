"""The answer of `why`, also under names of XLA's own run."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from hlofuse.format.escape import printable
from hlofuse.format.terminal import print_command
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.answer import Answer
from hlofuse.library.heads import head_of
from hlofuse.library.loading import with_change
from hlofuse.library.other_stages import tpu_reasons
from hlofuse.library.program import Program
from hlofuse.library.questions import Why
from hlofuse.reports.why import PairAnswer, Story
from hlofuse.reports.why.json import answers_json
from hlofuse.reports.why.story import Answer as Found
from hlofuse.reports.why.story import answers, confirmed, in_the_input
from hlofuse.reports.why.text import print_answers


def why(report: Program, options: Why) -> Answer[Any]:
    """The answer of `why`, confirmed by replays where a knob decides; for a TPU, learnt reasons."""
    name, other = options.name, options.other
    try:
        observed = report.observed
    except HlofuseError:
        if (learnt := tpu_reasons(report, [n for n in (name, other) if n])) is None:
            raise
        return learnt
    found = _by_own_names(report, name, other) or answers(
        observed.replay, name, other, unoptimized=report.unoptimized, facts=report.facts
    )
    replayed = partial(with_change, report.options, observed)
    found = confirmed(found, observed, replayed, report.facts)
    found.sort(key=lambda a: -(a.us or 0.0) * a.runs if isinstance(a, Story) else 0.0)
    queries = (name,) if other is None else (name, other)
    arguments = report.options.input_arguments

    def draw(console: Console, limit: int = 20, details: bool = False) -> None:
        total = report.totals.kernels
        print_answers(
            found, queries, console, input_arguments=arguments, limit=limit, details=details, total=total
        )
        if not details:
            console.print()
            print_command(console, 0, "why", *arguments, *queries, "--details")

    return Answer(
        " and ".join(queries),
        lambda: found,
        json=lambda data: answers_json(data, queries),
        body=draw,
        rows_of=_decisions,
        entries_of=lambda data: data,
        note=observed.note,
        heads=[head_of(report.replay, names=True)],
        differences=[report.difference],
    )


def _decisions(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for answer in document.get("answers", [document]):
        for part in ("decisions", "as_producer", "as_consumer", "rewrites"):
            yield from answer.get(part, ())


def _by_own_names(report: Program, name: str, other: str | None) -> list[Found]:
    """The answer by names of the input, for names of XLA's own run that mean nothing under other settings.

    A note says so. Empty where the names have an answer as they are.
    """

    observed = report.observed
    if observed.xla is None:
        return []
    try:
        if _has_answer(answers(observed.replay, name, other)):
            return []
    except HlofuseError:
        pass
    queries = (name,) if other is None else (name, other)
    try:
        names = observed.xla.replay.names_at_fusion
        own = [names.get(n.strip().lstrip("%"), n) for n in queries]
        translated = in_the_input(own, observed.xla.replay)
        found = answers(observed.replay, *translated, costs=observed.costs)
    except HlofuseError:
        return []
    if not _has_answer(found):
        return []
    shown = printable(" and ".join(translated))
    report.options.listener.note(f"these settings change the numbers in fusion names; explaining {shown}")
    return found


def _has_answer(found: Sequence[Found]) -> bool:
    return any(not isinstance(a, PairAnswer) or a.outcome != "apart" for a in found)
