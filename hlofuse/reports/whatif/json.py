"""`what-if --format json`; the schema is in docs/json-what-if.md."""

from typing import Any

from hlofuse.reports.common.json import refusal_json, totals_json, us_json
from hlofuse.reports.difference.json import difference_json
from hlofuse.reports.whatif.model import Ranking, Sweep

SCHEMA = "hlofuse.what-if/2"


def ranking_json(r: Ranking) -> dict[str, Any]:
    """The ranking as JSON values."""
    return {
        "schema": SCHEMA,
        "about": "rules",
        "module": r.module,
        "file": r.filename,
        "target": r.target,
        "device": r.device,
        "release": r.release,
        "changes": list(r.changes),
        "selected": r.selected,
        "before": totals_json(r.before),
        "after": totals_json(r.after),
        "relaxed": [
            {
                "rule": x.rule.code,
                "title": x.rule.title,
                "saves": x.saves,
                "kernels_saved": x.kernels_saved,
                "bytes_saved": x.bytes_saved,
                "us_saved": us_json(x.us_saved),
                "refusals": x.refusals,
                "blocks": [refusal_json(b) for b in x.blocks],
                "difference": difference_json(x.difference),
            }
            for x in r.relaxed
        ],
        "fixed": [
            {
                "rule": f.rule.code,
                "title": f.rule.title,
                "reason": f.reason,
                "refusals": f.refusals,
                "blocks": [refusal_json(b) for b in f.blocks],
            }
            for f in r.fixed
        ],
    }


def sweep_json(s: Sweep) -> dict[str, Any]:
    """The sweep as JSON values."""
    return {
        "schema": SCHEMA,
        "about": "sweep",
        "module": s.module,
        "file": s.filename,
        "target": s.target,
        "release": s.release,
        "changes": list(s.changes),
        "axes": [
            {"name": a.name, "values": list(a.values), "unit": a.unit, "summary": a.summary} for a in s.axes
        ],
        "devices": [
            {
                "device": device,
                "xla_values": dict(zip((a.name for a in s.axes), values, strict=True)),
                "xla": totals_json(xla),
            }
            for device, values, xla in zip(s.devices, s.xla_values, s.xla, strict=True)
        ],
        "points": [
            {
                "device": p.device,
                "values": dict(zip((a.name for a in s.axes), p.values, strict=True)),
                "is_xla": p.is_xla,
                "difference": difference_json(p.difference),
            }
            for p in s.points
        ],
    }
