"""`timeline --format json`: `docs/timeline.md` says what the fields mean."""

from collections.abc import Sequence

from hlofuse.format.fields import fields
from hlofuse.ir.record import Json
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.timeline import phrases
from .model import DumpSequence, PassTimeline, Size, Step


def timeline_json(dump_sequences: Sequence[DumpSequence], timelines: Sequence[PassTimeline]) -> Json:
    """All modules, and the timelines of those that were requested."""
    return {
        "schema": "hlofuse.timeline/3",
        "modules": [
            {"module": r.label, "dumps": len(r.dumps), "first_dump_bytes": r.dumps[0].path.stat().st_size}
            for r in dump_sequences
        ],
        "films": [
            {
                **fields(f, "module=label notes no_times_because=times? seconds"),
                **fields(f, "first last", _size),
                **profile_json(f.measured),
                "largest": [s.dump.path.name for s in f.largest],
                **fields(f, "steps", _step),
            }
            for f in timelines
        ],
    }


def _size(size: Size) -> dict[str, int]:
    return fields(size, "instructions kernels fusions")


def _step(step: Step) -> Json:
    return {
        **fields(step, "file=dump.path.name number=dump.number pipeline=dump.pipeline? pass=dump.after"),
        "compared_with": step.since.path.name if step.since else None,
        **fields(step, "problem changed weight seconds"),
        **fields(step, "before after", _size),
        "opcodes": {op: {"before": b, "after": a} for op, b, a in step.opcodes},
        "rewrites": [fields(r, "kind removed added count example") for r in step.rewrites],
        "fusions": dict(step.fusions),
        "changes": dict(step.changes),
        "header": list(step.header),
        "what": phrases.what(step) if step.changed or step.problem else None,
    }
