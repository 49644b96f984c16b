"""`trace-op --format json`; docs/timeline.md says what the fields mean."""

from dataclasses import asdict
from typing import Any

from hlofuse.reports.trace_op.model import Provenance

SCHEMA = "hlofuse.trace-op/1"


def provenance_json(provenance: Provenance) -> dict[str, Any]:
    """Everything; `docs/timeline.md` says what the fields mean."""
    return {
        "schema": SCHEMA,
        "module": provenance.label,
        "asked": provenance.query,
        "first": provenance.first.path.name,
        "last": provenance.last.path.name,
        "unreadable": [f.path.name for f in provenance.unreadable],
        "operations": [
            {
                "name": t.name,
                "opcode": t.opcode,
                "source": t.source or None,
                "op_name": t.op_name or None,
                "stops": [
                    {
                        "file": s.dump.path.name,
                        "pipeline": s.dump.pipeline or None,
                        "pass": s.dump.after,
                        "how": str(s.how),
                        "places": [asdict(location) for location in s.locations],
                        "instead_of": list(s.instead_of),
                    }
                    for s in t.events
                ],
                "ends_in": [asdict(k) for k in t.ends],
            }
            for t in provenance.trails
        ],
    }
