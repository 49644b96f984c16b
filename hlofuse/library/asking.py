"""Why instructions were fused or not, also under names of XLA's own run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.naming import final_names_of

if TYPE_CHECKING:
    from hlofuse.library.program import Program
    from hlofuse.reports.why.story import Answer


def answers_about(report: Program, name: str, other: str | None) -> list[Answer]:
    """All answers about a name or a pair, confirmed by replays where a knob settles it."""
    from hlofuse.reports.why.confirm import confirmed
    from hlofuse.reports.why.story import answers

    observed = report.observed
    found = _by_own_names(report, name, other) or answers(
        observed.replay,
        name,
        other,
        costs=observed.costs,
        names=report.names,
        unoptimized=report.unoptimized,
    )
    return confirmed(found, observed, lambda change: report.options.with_change(observed, change))


def _by_own_names(report: Program, name: str, other: str | None) -> list[Answer]:
    """The answer by names of the input, for names of XLA's own run that mean nothing under other settings.

    A note says so. Empty where the names have an answer as they are.
    """
    from hlofuse.reports.why.story import answers, in_the_input

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
        names = final_names_of(observed.xla.replay)
        own = [names.names_at_fusion.get(n.strip().lstrip("%"), n) for n in queries]
        translated = in_the_input(own, observed.xla.replay)
        found = answers(observed.replay, *translated, costs=observed.costs)
    except HlofuseError:
        return []
    if not _has_answer(found):
        return []
    shown = printable(" and ".join(translated))
    report.options.listener.note(f"these settings change the numbers in fusion names; explaining {shown}")
    return found


def _has_answer(found: Sequence[Answer]) -> bool:
    from hlofuse.reports.why import PairAnswer

    return any(not isinstance(a, PairAnswer) or a.outcome != "apart" for a in found)
