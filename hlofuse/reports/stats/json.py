"""`stats --format json`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.reports.common.json import cost_json, totals_json
from hlofuse.reports.stats.model import ModuleStatistics

SCHEMA = "hlofuse.stats/2"


def statistics_json(modules: list[ModuleStatistics]) -> dict[str, Any]:
    """The whole report as JSON values."""
    return {"schema": SCHEMA, "modules": [_module(m) for m in modules]}


def _module(m: ModuleStatistics) -> dict[str, Any]:
    return {
        "name": m.name,
        "file": m.filename,
        "stage": m.stage,
        "platform": m.backend,
        "instructions": m.instructions,
        "totals": totals_json(m.totals),
        "opcodes": m.opcodes,
        "fusions": m.fusions,
        "computations": [
            {
                "name": c.name,
                "role": c.role,
                "turns": c.iterations,
                "instructions": c.instructions,
                "kernels": c.kernels,
                "opcodes": c.opcodes,
                "cost": cost_json(c.cost),
            }
            for c in m.computations
        ],
        "fusion_bodies": m.fusion_bodies,
        "applied_computations": m.applied_computations,
        "heaviest": [
            {
                "name": k.final or k.name,
                "input_name": k.name,
                "opcode": k.opcode,
                "kind": k.kind,
                "computation": k.computation,
                "holds": k.holds,
                "cost": cost_json(k.cost),
                "turns": k.iterations,
                "source": k.source,
                "layer": k.layer,
            }
            for k in m.heaviest
        ],
    }
