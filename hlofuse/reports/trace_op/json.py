"""`trace-op --format json`; docs/timeline.md says what the fields mean."""

from dataclasses import asdict
from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.json import measured_json
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.trace_op.model import Provenance

SCHEMA = "hlofuse.trace-op/3"


def provenance_json(provenance: Provenance) -> dict[str, Any]:
    """Everything; `docs/timeline.md` says what the fields mean."""
    times = m.times if (m := provenance.measured) is not None else {}
    return {
        "schema": SCHEMA,
        **fields(provenance, "module=label asked=query first=first.path.name last=last.path.name"),
        **({"profile": profile_json(m)} if m is not None else {}),
        "unreadable": [f.path.name for f in provenance.unreadable],
        "operations": [
            {
                **fields(t, "name opcode source? op_name?"),
                "stops": [
                    {
                        **fields(s, "file=dump.path.name pipeline=dump.pipeline? pass=dump.after"),
                        "how": str(s.how),
                        "places": [asdict(location) for location in s.locations],
                        "instead_of": list(s.instead_of),
                    }
                    for s in t.events
                ],
                "ends_in": [{**asdict(k), **measured_json(times.get(k.name))} for k in t.ends],
            }
            for t in provenance.trails
        ],
    }
