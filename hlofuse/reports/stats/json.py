"""`stats --format json`; the schema is in docs/json.md."""

from __future__ import annotations

from typing import Any

from hlofuse.analysis.cost import Cost
from hlofuse.reports.stats import ModuleStatistics

SCHEMA = "hlofuse.stats/1"


def cost_json(cost: Cost) -> dict[str, Any]:
    """A cost as an object; `unknown` counts custom calls left out of the figures."""
    return {
        "flops": cost.flops,
        "transcendentals": cost.transcendentals,
        "bytes_read": cost.bytes_read,
        "bytes_written": cost.bytes_written,
        "bytes_accessed": cost.bytes_accessed,
        "unknown": cost.unknown,
    }


def statistics_json(modules: list[ModuleStatistics]) -> dict[str, Any]:
    """The whole report as JSON values."""
    return {"schema": SCHEMA, "modules": [_module(m) for m in modules]}


def _module(m: ModuleStatistics) -> dict[str, Any]:
    return {
        "name": m.name,
        "file": m.filename,
        "stage": m.stage,
        "platform": m.platform,
        "instructions": m.instructions,
        "kernels": m.kernels,
        "opcodes": m.opcodes,
        "fusions": m.fusions,
        "cost": cost_json(m.cost),
        "computations": [
            {
                "name": c.name,
                "role": c.role,
                "turns": c.turns,
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
                "name": k.name,
                "opcode": k.opcode,
                "kind": k.kind,
                "computation": k.computation,
                "holds": k.holds,
                "cost": cost_json(k.cost),
                "turns": k.turns,
                "source": k.source,
                "layer": k.layer,
            }
            for k in m.heaviest
        ],
    }
