"""`what-if --format json`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.json import refusal_json, totals_json
from hlofuse.reports.comparison.json import difference_json
from hlofuse.reports.whatif.model import Ranking, Sweep

SCHEMA = "hlofuse.what-if/3"


def ranking_json(r: Ranking) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "about": "rules",
        **fields(r, "module file=filename target device release changes selected"),
        **fields(r, "before", totals_json),
        "after": totals_json(r.after, "replayed"),
        "relaxed": [
            {
                **fields(x, "rule=rule.code title=rule.title refusals"),
                **fields(x.trial, "kernels_saved bytes_saved us_saved~ scaled_us_saved~"),
                "saves": x.trial.helps(x.difference.xla),
                "blocks": [refusal_json(b) for b in x.blocks],
                "difference": difference_json(x.difference),
            }
            for x in r.relaxed
        ],
        "fixed": [
            {
                **fields(f, "rule=rule.code title=rule.title reason refusals"),
                "blocks": [refusal_json(b) for b in f.blocks],
            }
            for f in r.fixed
        ],
    }


def sweep_json(s: Sweep) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "about": "sweep",
        **fields(s, "module file=filename target release changes"),
        "axes": [fields(a, "name values unit summary") for a in s.axes],
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
