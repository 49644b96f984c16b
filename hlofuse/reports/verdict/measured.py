"""Suggested changes, run on this machine: one counts only above the noise."""

from collections.abc import Iterator, Sequence

from hlofuse.ir import Module, replace
from hlofuse.judge.measure import measured_changes
from hlofuse.passes.common import make
from hlofuse.reports.advice.written import prepared
from .candidates import UNKNOWN, rewritten
from .model import MEASURED, Suggestion, Verdict

_LEAST_NOISE = 0.02
"""Differences below this part of the time count as noise."""
_MOST = 6
"""Flags that are run, and changes of code."""


def with_measured_changes(
    v: Verdict, module: Module, own: Sequence[str], inputs: str | None = None
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
    own_noise = max(_LEAST_NOISE, base.noise) * base.us
    scale = (v.totals.measured_us or base.us) / base.us  # the total was measured at another time
    found: list[Suggestion] = []
    run: list[Suggestion] = []
    keys: list[str | int] = [*(s.flag for s in flags), *range(len(code))]
    for key, s in zip(keys, [*flags, *(s for s, _ in code)], strict=True):
        if (time := times.get(key)) is None:
            continue
        run.append(s)
        if (gain := base.us - time.us) > max(own_noise, time.noise * time.us):
            found.append(replace(s, trial=replace(s.trial, how=MEASURED, scaled_us_saved=gain * scale)))
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
