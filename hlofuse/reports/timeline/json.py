"""`timeline --format json`: `docs/timeline.md` says what the fields mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlofuse.reports.timeline import phrases
from hlofuse.reports.timeline.dumps import Reel
from hlofuse.reports.timeline.model import Film, Size, Step

SCHEMA = "hlofuse.timeline/1"


def timeline_json(reels: Sequence[Reel], films: Sequence[Film]) -> dict[str, Any]:
    """All modules, and the films of those that were asked for."""
    return {
        "schema": SCHEMA,
        "modules": [{"module": r.label, "dumps": len(r.frames), "first_dump_bytes": r.size} for r in reels],
        "films": [_film(f) for f in films],
    }


def _film(film: Film) -> dict[str, Any]:
    return {
        "module": film.label,
        "notes": list(film.notes),
        "no_times_because": film.times or None,
        "seconds": film.seconds,
        "first": _size(film.first),
        "last": _size(film.last),
        "largest": [s.frame.path.name for s in film.largest],
        "steps": [_step(s) for s in film.steps],
    }


def _size(size: Size | None) -> dict[str, int] | None:
    if size is None:
        return None
    return {"instructions": size.instructions, "kernels": size.kernels, "fusions": size.fusions}


def _step(step: Step) -> dict[str, Any]:
    return {
        "file": step.frame.path.name,
        "number": step.frame.number,
        "pipeline": step.frame.pipeline or None,
        "pass": step.frame.after,
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
