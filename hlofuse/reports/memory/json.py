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
        "memory": fields(m, f"{_FIGURES} estimated=is_estimated"),
        "alive": [
            {
                **fields(a, "name opcode shape bytes source last_reader last_reader_source"),
                "index": list(a.index),
            }
            for a in m.alive
        ],
        "changes": [
            fields(c, "text flag? recipe? sources temporary_bytes saved_bytes time_us~ time_saved_us~")
            for c in m.changes
        ],
    }
