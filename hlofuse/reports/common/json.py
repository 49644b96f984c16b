"""Places and figures as JSON values; the schema is in docs/json.md."""

from __future__ import annotations

from typing import Any

from hlofuse.analysis.cost import Cost
from hlofuse.reports.common.model import Place, Refusal, Totals


def place_json(p: Place) -> dict[str, Any]:
    """An instruction under its final name and that at the end of fusion, and where it comes from."""
    return {
        "name": p.final or p.name,
        "input_name": p.name,
        "opcode": p.opcode,
        "shape": p.shape,
        "source": p.source,
        "op_name": p.op_name,
    }


def totals_json(t: Totals) -> dict[str, Any]:
    """A module as a whole."""
    return {"kernels": t.kernels, "cost": cost_json(t.cost), "us": us_json(t.us), "untimed": t.untimed}


def refusal_json(r: Refusal) -> dict[str, Any]:
    """A final verdict against a pair."""
    return {
        "producer": place_json(r.producer),
        "consumer": r.consumer_final or r.consumer,
        "consumer_input_name": r.consumer,
        "consumer_then": r.consumer_then,
        "said_of": r.refused_user,
        "rule": r.rule,
        "reason": r.reason,
        "figures": r.figures,
        "steps": list(r.steps),
        "between_kernels": r.between_kernels,
        "bytes_between": r.bytes_between,
        "us_at_stake": us_json(r.us_at_stake),
    }


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


def us_json(value: float | None) -> float | None:
    """Microseconds to a quarter of a nanosecond."""
    return None if value is None else rounded_us(value)


def rounded_us(value: float) -> float:
    return round(value, 5)
