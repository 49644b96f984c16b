"""`explain --compare-device --format json`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.costs import detail_json
from hlofuse.reports.common.json import place_json, totals_json
from hlofuse.reports.compare_builds.model import Comparison, FlippedEdge

SCHEMA = "hlofuse.compare-devices/3"


def comparison_json(c: Comparison) -> dict[str, Any]:
    """The comparison as JSON values."""
    return {
        "schema": SCHEMA,
        **fields(c, "module release what_if"),
        "devices": [
            {
                "device": s.label,
                **fields(s, "before after", totals_json),
                "only_here": [place_json(p) for p in alone],
            }
            for s, alone in zip(c.sides, c.alone, strict=True)
        ],
        "from_program": c.from_program,
        "flipped": [
            {**flipped_json(e), "terms": [{"number": n, "here": a, "there": b} for n, a, b in e.terms]}
            for e in c.flipped
        ],
    }


def flipped_json(e: FlippedEdge) -> dict[str, Any]:
    """An edge that only one build fuses."""
    settled = e.answer.settled_by if e.answer is not None else None
    return {
        **fields(e, "producer consumer", place_json),
        **fields(e, "fused_on apart_on=unfused_on kernels"),
        "rule": settled.rule.code if settled is not None else None,
        "cost": detail_json(e.answer.cost) if e.answer is not None else None,
    }
