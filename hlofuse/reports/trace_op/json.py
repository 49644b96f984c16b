"""`trace-op --format json`; docs/timeline.md says what the fields mean."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hlofuse.reports.trace_op.model import Journey

SCHEMA = "hlofuse.trace-op/1"


def journey_json(journey: Journey) -> dict[str, Any]:
    """Everything; `docs/timeline.md` says what the fields mean."""
    return {
        "schema": SCHEMA,
        "module": journey.label,
        "asked": journey.asked,
        "first": journey.first.path.name,
        "last": journey.last.path.name,
        "unreadable": [f.path.name for f in journey.unreadable],
        "operations": [
            {
                "name": t.name,
                "opcode": t.opcode,
                "source": t.source or None,
                "op_name": t.op_name or None,
                "stops": [
                    {
                        "file": s.frame.path.name,
                        "pipeline": s.frame.pipeline or None,
                        "pass": s.frame.after,
                        "how": str(s.how),
                        "places": [asdict(spot) for spot in s.spots],
                        "instead_of": list(s.instead_of),
                    }
                    for s in t.stops
                ],
                "ends_in": [asdict(k) for k in t.ends],
            }
            for t in journey.trails
        ],
    }
