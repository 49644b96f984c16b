"""The check itself: every module against its budgets and its baseline."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from hlofuse.format.units import plural
from hlofuse.reports.check.baseline import Baseline
from hlofuse.reports.check.compare import compare
from hlofuse.reports.check.limits import Budget, over_budget
from hlofuse.reports.check.model import Check, Code, Finding, Level, ModuleCheck, Profile, RefusedEdge
from hlofuse.reports.common.head import Head
from hlofuse.reports.verdict.model import Verdict


@dataclass(frozen=True, slots=True)
class Measured:
    """A module's profile, and who can say what keeps its kernels apart."""

    profile: Profile
    file: str
    refused_edges: Callable[[], list[RefusedEdge]]
    """Asked where something broke only: it takes longer than everything else."""
    changes: tuple[str, ...] = ()
    """What is other than in XLA."""
    note: str = ""
    """How the module came to be; empty where XLA made it."""
    head: Head | None = None
    """What it was taken for."""
    verdict: Callable[[], Verdict | None] = lambda: None
    """What is left to gain, and what to change; called for a module that failed."""


def check_modules(
    measured: Iterable[Measured],
    *,
    budgets: Sequence[Budget] = (),
    baseline: Baseline | None = None,
    baseline_name: str | None = None,
    all_there: bool = True,
    tolerance: float = 0.0,
    strict: bool = False,
) -> Check:
    """Compare modules with budgets (those of the baseline as well) and with the baseline.

    `all_there`: what the baseline has and `measured` has not is worth saying. HlofuseError where a comparison
    has no meaning (another device, a time that nothing estimates).
    """
    bounds = [*budgets, *(baseline.budgets if baseline is not None else ())]
    done = []
    changes: dict[str, None] = {}
    notes: dict[str, None] = {}
    for m in measured:
        refused_edges = cache(m.refused_edges)  # asked for each finding
        changes |= dict.fromkeys(m.changes)
        notes |= dict.fromkeys([m.note] if m.note else [])
        found = over_budget(m.profile, bounds, refused_edges)
        profile = baseline.profiles.get(m.profile.name) if baseline is not None else None
        if profile is not None:
            found += compare(m.profile, profile, refused_edges, tolerance=tolerance, strict=strict)
        elif baseline is not None and baseline.profiles:
            message = f"not in the baseline ({plural(m.profile.figures.kernels, 'kernel')}): --update adds it"
            level = Level.ERROR if strict else Level.WARNING
            found.append(Finding(Code.MODULE_NEW, level, m.profile.name, message))
        failed = any(f.level is Level.ERROR for f in found)
        answer = m.verdict() if failed else None
        done.append(ModuleCheck(m.profile, m.file, profile, tuple(found), answer))
    names = {m.profile.name for m in done}
    others = [
        Finding(
            Code.MODULE_MISSING,
            Level.ERROR if strict else Level.NOTE,
            name,
            "in the baseline, not in the input: take its lines out if it is gone for good",
        )
        for name in (baseline.profiles if baseline is not None and all_there else ())
        if name not in names
    ]
    return Check(tuple(done), tuple(others), baseline_name, what_if=tuple(changes), notes=tuple(notes))
