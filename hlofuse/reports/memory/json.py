"""`memory --format json`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.memory.model import MemoryUse

SCHEMA = "hlofuse.memory/3"
_FIGURES = "arguments results temporary aliased constants vmem total peak available device? fits"


def memory_json(m: MemoryUse) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "module": m.name,
        "memory": {
            **fields(m, f"{_FIGURES} recorded_temporary recorded_total estimated=is_estimated"),
            "rematerialized": {"kernels": m.rematerialized[0], "time_us": m.rematerialized[1]},
        },
        "alive": [
            {
                **fields(a, "name opcode shape bytes source last_reader last_reader_source reason?"),
                "index": list(a.index),
            }
            for a in m.alive
        ],
        "changes": [
            {
                **fields(c, "text flag? recipe? sources temporary_bytes=trial.totals.peak_temporary_bytes"),
                **fields(c, "saved_bytes=trial.temporary_saved memory_bytes=trial.totals.memory_bytes"),
                **fields(c, "memory_saved_bytes=trial.memory_saved time_us=trial.totals.us~"),
                **fields(c, "time_saved_us=trial.us_saved~"),
            }
            for c in m.changes
        ],
    }
