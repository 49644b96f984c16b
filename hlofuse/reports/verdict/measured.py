"""Suggested flags, run on this machine: a change counts only above the noise."""

from collections.abc import Sequence
from dataclasses import replace

from hlofuse.ir.graph import Module
from hlofuse.judge.measure import measured_flags
from hlofuse.reports.verdict.model import Suggestion, Verdict

_LEAST_NOISE = 0.02
"""Differences below this part of the time count as noise."""
_FLAGS = 6
MEASURED = "measured"
"""`Trial.how` of a change that was run."""


def with_measured_flags(v: Verdict, module: Module, own: Sequence[str]) -> Verdict:
    """The verdict with the flags that make the program faster, by so much; those that do not are left out.

    `module` is the one before optimizations, `own` its flags. Changes of code stay as they were.
    """
    candidates = [s for s in (*v.suggestions, *v.untried) if s.flag][:_FLAGS]
    if not candidates:
        return v
    times = measured_flags(module, own, [s.flag for s in candidates])
    if (base := times.get("")) is None:
        return v
    candidates = [s for s in candidates if s.flag in times]
    noise = max(_LEAST_NOISE, *(t.noise for t in times.values())) * base.us
    found: list[Suggestion] = []
    for s in candidates:
        if (gain := base.us - times[s.flag].us) > noise:
            found.append(replace(s, trial=replace(s.trial, how=MEASURED, scaled_us_saved=gain)))
    others = [s for s in v.suggestions if s not in candidates]
    found.sort(key=lambda s: -(s.trial.scaled_us_saved or 0.0))
    return replace(
        v,
        suggestions=(*found, *others),
        untried=tuple(s for s in v.untried if s not in candidates),
    )
