"""`timeline --format json`: `docs/timeline.md` says what the fields mean."""

from collections.abc import Sequence
from typing import Any

from hlofuse.reports.timeline import phrases
from hlofuse.reports.timeline.dumps import DumpSequence
from hlofuse.reports.timeline.model import PassTimeline, Size, Step

SCHEMA = "hlofuse.timeline/1"


def timeline_json(
    dump_sequences: Sequence[DumpSequence], timelines: Sequence[PassTimeline]
) -> dict[str, Any]:
    """All modules, and the films of those that were asked for."""
    return {
        "schema": SCHEMA,
        "modules": [
            {"module": r.label, "dumps": len(r.dumps), "first_dump_bytes": r.size} for r in dump_sequences
        ],
        "films": [_timeline_json(f) for f in timelines],
    }


def _timeline_json(timeline: PassTimeline) -> dict[str, Any]:
    return {
        "module": timeline.label,
        "notes": list(timeline.notes),
        "no_times_because": timeline.times or None,
        "seconds": timeline.seconds,
        "first": _size(timeline.first),
        "last": _size(timeline.last),
        "largest": [s.dump.path.name for s in timeline.largest],
        "steps": [_step(s) for s in timeline.steps],
    }


def _size(size: Size | None) -> dict[str, int] | None:
    if size is None:
        return None
    return {"instructions": size.instructions, "kernels": size.kernels, "fusions": size.fusions}


def _step(step: Step) -> dict[str, Any]:
    return {
        "file": step.dump.path.name,
        "number": step.dump.number,
        "pipeline": step.dump.pipeline or None,
        "pass": step.dump.after,
        "compared_with": step.since.path.name if step.since else None,
        "problem": step.problem,
        "changed": step.changed,
        "weight": step.weight,
        "seconds": step.seconds,
        "before": _size(step.before),
        "after": _size(step.after),
        "opcodes": {op: {"before": b, "after": a} for op, b, a in step.opcodes},
        "rewrites": [
            {
                "kind": r.kind,
                "removed": list(r.removed),
                "added": list(r.added),
                "count": r.count,
                "example": r.example,
            }
            for r in step.rewrites
        ],
        "fusions": dict(step.fusions),
        "changes": dict(step.changes),
        "header": list(step.header),
        "what": phrases.what(step) if step.changed or step.problem else None,
    }
