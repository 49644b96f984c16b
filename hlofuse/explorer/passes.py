"""The film of the dump directory that a replayed module lies in, as the page tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hlofuse.diff import ModuleDiff
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.reports.timeline import Reel, film, reels
from hlofuse.reports.timeline.model import Film
from hlofuse.reports.timeline.step_details import Closeup, closeup
from hlofuse.reports.trace_op.lineage_graph import Weave


@dataclass(frozen=True, slots=True)
class Passes:
    """Every pass of a compilation, what it changed line by line, and where each operation went."""

    film: Film
    closeups: dict[int, Closeup] = field(default_factory=dict)
    """By the step's number."""
    weave: Weave = field(default_factory=Weave)
    start: int = -1
    """The step whose dump was replayed; -1 if it is none of them."""


def reel_of(module: Module) -> Reel | None:
    """The dumps of a module that was read from a directory; None where it is the only one."""
    path = Path(module.filename or "")
    try:
        found = reels(path.parent)
    except HlofuseError:
        return None
    own = next((r for r in found if any(f.path.name == path.name for f in r.frames)), None)
    return own if own is not None and len(own.frames) > 1 else None


def passes_of(
    reel: Reel, module: Module | None = None, progress: Callable[[int, int], None] | None = None
) -> Passes:
    """Compare every dump with the one ahead; `module` is the one that was replayed."""
    closeups: dict[int, Closeup] = {}
    weave = Weave()

    def watch(step: int, now: Module, found: ModuleDiff | None) -> None:
        if found is None:
            weave.begin(step, now)
            return
        weave.advance(step, found)
        if not found.same:
            closeups[step] = closeup(found)

    told = film(reel, progress, watch)
    name = Path(module.filename or "").name if module is not None else ""
    start = next((n for n, s in enumerate(told.steps) if s.frame.path.name == name), -1)
    return Passes(told, closeups, weave, start)
