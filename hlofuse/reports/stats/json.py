"""`stats --format json`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.json import cost_json, measured_json, totals_json
from hlofuse.reports.stats.model import ModuleStatistics

SCHEMA = "hlofuse.stats/3"


def statistics_json(modules: list[ModuleStatistics]) -> dict[str, Any]:
    return {"schema": SCHEMA, "modules": [_module(m) for m in modules]}


def _module(m: ModuleStatistics) -> dict[str, Any]:
    return {
        **fields(m, "name file=filename stage platform=backend instructions"),
        "totals": totals_json(m.totals),
        "opcodes": m.opcodes,
        "fusions": m.fusions,
        "computations": [
            {
                **fields(c, "name role turns=iterations instructions kernels opcodes"),
                "cost": cost_json(c.cost),
            }
            for c in m.computations
        ],
        "fusion_bodies": m.fusion_bodies,
        "applied_computations": m.applied_computations,
        "heaviest": [
            {
                "name": k.final or k.name,
                **fields(k, "input_name=name opcode=row.instruction.opcode kind=row.instruction.fusion_kind"),
                **fields(k, "computation holds"),
                "cost": cost_json(k.row.cost),
                **measured_json(k.row.measured),
                **fields(k, "turns=row.runs source layer"),
            }
            for k in m.heaviest
        ],
    }
