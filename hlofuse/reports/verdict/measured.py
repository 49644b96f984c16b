"""Suggested changes, run on this machine: one counts only above the noise."""

from collections.abc import Iterator, Sequence

from hlofuse.ir import Module, replace
from hlofuse.judge.measure import measured_changes
from hlofuse.passes.common import make
from hlofuse.reports.advice.written import prepared
from .candidates import UNKNOWN, rewritten
from .model import MEASURED, Suggestion, Verdict

_LEAST = 0.02  # the part of the time that a change has to save in each quarter of the measurement
_MOST = 6  # flags that are run, and changes of code


def with_measured_changes(
    v: Verdict,
    module: Module,
    own: Sequence[str],
    inputs: str | None = None,
) -> Verdict:
    """The verdict with the changes that make the program faster, by so much; the others are left out.
    `module` is the one before optimizations, `own` its flags. Of the changes of code, those that can be made
    in this module are run; the others stay as they were, after those that were measured."""
    given = (*v.suggestions, *v.untried)
    flags = [s for s in given if s.flag][:_MOST]
    code = sorted(_changed(given, module), key=lambda c: c[0] not in given)[:_MOST]
    if not flags and not code:
        return v
    times = measured_changes(module, own, [s.flag for s in flags], [m for _, m in code], inputs)
    if (base := times.get("")) is None:
        return v
    scale = (v.totals.measured_us or base.us) / base.us  # the total was measured at another time
    timed = [(s, times[s.flag]) for s in flags if s.flag in times]
    timed += [(s, times[n]) for n, (s, _) in enumerate(code) if n in times]
    run = [s for s, _ in timed]
    found = []
    for s, time in timed:
        gain = (base.us - time.us) * scale
        if base.least_gain(time) > _LEAST * base.us:
            found.append(replace(s, trial=replace(s.trial, how=MEASURED, scaled_us_saved=gain)))
    found.sort(key=lambda s: -(s.trial.scaled_us_saved or 0.0))
    others = [s for s in v.suggestions if s not in run]
    untried = tuple(s for s in v.untried if s not in run)
    return replace(v, suggestions=(*found, *others), untried=untried, together=None)


def _changed(given: Sequence[Suggestion], module: Module) -> Iterator[tuple[Suggestion, Module]]:
    """The module with each change that can be made in it; a suggestion of that change is one of `given`."""
    suggested = {(s.recipe, s.text): s for s in reversed(given) if s.recipe}
    for r in rewritten(prepared(module), "cpu", loops=True):
        make.reshape_bitcasts(r.module)
        yield suggested.get((r.recipe.name, r.recipe.text)) or r.suggestion(UNKNOWN), r.module
