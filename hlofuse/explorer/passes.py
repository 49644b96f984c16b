"""The film of the dump directory that a replayed module lies in, as the page tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hlofuse.diff import ModuleDiff
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.reports.timeline import DumpSequence, dump_sequences, timeline
from hlofuse.reports.timeline.model import PassTimeline
from hlofuse.reports.timeline.step_details import StepDetails, step_details
from hlofuse.reports.trace_op.lineage_graph import LineageGraph


@dataclass(frozen=True, slots=True)
class Passes:
    """Every pass of a compilation, what it changed line by line, and where each operation went."""

    timeline: PassTimeline
    closeups: dict[int, StepDetails] = field(default_factory=dict)
    """By the step's number."""
    lineage: LineageGraph = field(default_factory=LineageGraph)
    start: int = -1
    """The step whose dump was replayed; -1 if it is none of them."""


def sequence_of(module: Module) -> DumpSequence | None:
    """The dumps of a module that was read from a directory; None where it is the only one."""
    path = Path(module.filename or "")
    try:
        found = dump_sequences(path.parent)
    except HlofuseError:
        return None
    own = next((r for r in found if any(f.path.name == path.name for f in r.dumps)), None)
    return own if own is not None and len(own.dumps) > 1 else None


def passes_of(
    sequence: DumpSequence, module: Module | None = None, progress: Callable[[int, int], None] | None = None
) -> Passes:
    """Compare every dump with the one ahead; `module` is the one that was replayed."""
    closeups: dict[int, StepDetails] = {}
    lineage = LineageGraph()

    def watch(step: int, now: Module, found: ModuleDiff | None) -> None:
        if found is None:
            lineage.begin(step, now)
            return
        lineage.advance(step, found)
        if not found.same:
            closeups[step] = step_details(found)

    pass_timeline = timeline(sequence, progress, watch)
    name = Path(module.filename or "").name if module is not None else ""
    start = next((n for n, s in enumerate(pass_timeline.steps) if s.dump.path.name == name), -1)
    return Passes(pass_timeline, closeups, lineage, start)
