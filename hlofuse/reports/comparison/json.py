"""Comparisons of two compilations as JSON values (docs/json.md)."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.costs import detail_json
from hlofuse.reports.common.json import place_json, totals_json
from hlofuse.reports.comparison.model import ChangedEdge, Comparison


def difference_json(c: Comparison) -> dict[str, Any]:
    """A what-if compared with XLA, as a part of every report of the what-if."""
    return {
        **fields(c, "changes other_model"),
        "xla": totals_json(c.xla),
        "ours": totals_json(c.replayed),
        **fields(c, "fused parted", edge_json),
    }


def edge_json(e: ChangedEdge) -> dict[str, Any]:
    return fields(e, "producer consumer", place_json)


def flipped_json(e: ChangedEdge) -> dict[str, Any]:
    """An edge that only one build fuses, with the reason."""
    settled = e.answer.settled_by if e.answer is not None else None
    return {
        **edge_json(e),
        **fields(e, "fused_on apart_on=unfused_on kernels"),
        "rule": settled.rule.code if settled is not None else None,
        "cost": detail_json(e.answer.cost) if e.answer is not None else None,
    }
