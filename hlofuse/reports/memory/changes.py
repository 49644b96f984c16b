"""Changes that need less temporary memory, each replayed on the module."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hlofuse.account import Observed, Totals
from hlofuse.account.replaying import account_of
from hlofuse.compilation.spans import finish
from hlofuse.pipelines.flags import DISABLED
from hlofuse.pipelines.stage import Stage
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import TRIED_UP_TO
from hlofuse.reports.verdict.candidates import with_own
from hlofuse.reports.verdict.model import Suggestion, Verdict
from hlofuse.reports.verdict.phrases import suggestion_text

_OPTIONAL = frozenset({"copy_fusion", "computation-deduplicator"})
"""Passes after fusion that XLA:GPU compiles without; the others that change a module it needs."""
_LEAST = 0.01
"""The part of the temporary memory that a change has to save."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    text: str
    """The action; of a flag, the words to set."""
    flag: str
    recipe: str
    sources: tuple[str, ...]
    temporary_bytes: int
    """With the change."""
    saved_bytes: int
    time_us: float | None
    """Estimated time with the change; None without times."""
    time_saved_us: float | None


def memory_changes(
    observed: Observed, facts: Facts, verdict: Callable[[], Verdict]
) -> tuple[MemoryChange, ...]:
    """Suggestions and passes left out that save 1% or more of the temporary memory, largest saving first.

    Above `TRIED_UP_TO` instructions a suggestion is tried on a part of the module, which has no memory of its
    own: then `verdict` is not asked for.
    """
    before = facts.account_replayed.totals
    found = []
    suggestions = verdict().suggestions if len(facts.before) <= TRIED_UP_TO else ()
    for text, flag, recipe, sources, after in _trials(observed, suggestions):
        if before.peak_temporary_bytes is None or after.peak_temporary_bytes is None:
            continue
        saved = before.peak_temporary_bytes - after.peak_temporary_bytes
        if saved > 0 and saved >= _LEAST * before.peak_temporary_bytes:
            us = before.us - after.us if before.us is not None and after.us is not None else None
            temporary = after.peak_temporary_bytes
            found.append(MemoryChange(text, flag, recipe, sources, temporary, saved, after.us, us))
    return tuple(sorted(found, key=lambda c: -c.saved_bytes))


def _trials(
    observed: Observed, suggestions: Iterable[Suggestion]
) -> Iterator[tuple[str, str, str, tuple[str, ...], Totals]]:
    """Each change with its flag, recipe, lines and totals."""
    for s in suggestions:
        if s.trial.totals is not None and s.kind != "report":
            yield suggestion_text(s), s.flag, s.recipe, s.sources, s.trial.totals
    replay = observed.replay
    for name in sorted(_OPTIONAL.intersection(replay.span(Stage.SCHEDULED).changing_passes)):
        flag = with_own(f"--{DISABLED}={name}", replay.config.build.flags)
        module = finish(replay.after, replay.config.without_passes([name]), ()).module
        account = account_of(replay, observed.costs, module, is_final=True)
        yield f"XLA_FLAGS={flag}", flag, "", (), account.totals
