"""The difference to XLA as JSON values (docs/json.md)."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.json import place_json, totals_json
from hlofuse.reports.difference.model import ChangedEdge, Difference


def difference_json(d: Difference) -> dict[str, Any]:
    """The difference as JSON values (docs/json.md)."""
    return {
        **fields(d, "changes other_model"),
        "xla": totals_json(d.xla),
        "ours": totals_json(d.replayed),
        **fields(d, "fused parted", edge_json),
    }


def edge_json(e: ChangedEdge) -> dict[str, Any]:
    """Both ends of an edge."""
    return fields(e, "producer consumer", place_json)
