"""The difference to XLA as JSON values (docs/json.md)."""

from typing import Any

from hlofuse.reports.common.json import place_json, totals_json
from hlofuse.reports.difference.model import ChangedEdge, Difference


def difference_json(d: Difference) -> dict[str, Any]:
    """The difference as JSON values (docs/json.md)."""
    return {
        "changes": list(d.changes),
        "other_model": d.other_model,
        "xla": totals_json(d.xla),
        "ours": totals_json(d.replayed),
        "fused": [edge_json(e) for e in d.fused],
        "parted": [edge_json(e) for e in d.parted],
    }


def edge_json(e: ChangedEdge) -> dict[str, Any]:
    """Both ends of an edge."""
    return {"producer": place_json(e.producer), "consumer": place_json(e.consumer)}
