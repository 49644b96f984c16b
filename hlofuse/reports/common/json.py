"""Places and figures as JSON values; the schema is in docs/json.md."""

from collections.abc import Iterable
from typing import Any

from hlofuse.account import Totals
from hlofuse.analysis.cost import Cost
from hlofuse.reports.common.model import CreatedBy, FinalKernel, Place, Refusal


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
    """A module as a whole: what is launched, every launch counted."""
    return {
        "kernels": t.kernels,
        "launches": t.launches,
        "bytes": t.cost.bytes_accessed,
        "flop": t.cost.flops,
        "time_us": us_json(t.us),
        "modelled_us": us_json(t.modelled_us),
        "floor_us": us_json(t.floor_us),
        "floors": t.floors,
        "copies": {"count": t.copies, "bytes": t.copy_bytes},
        "peak_temporary_bytes": t.peak_temporary_bytes,
        "cost": cost_json(t.cost),
    }


def kernels_json(kernels: Iterable[FinalKernel]) -> list[dict[str, Any]]:
    """What is launched: `time_us` and `bytes` are of one run, of `runs` runs."""
    return [
        {
            "name": k.place.final or k.place.name,
            "input_name": k.input_name,
            "source": k.place.source,
            "op_name": k.place.op_name,
            "kind": k.kind,
            "runs": k.runs,
            "per_iteration": k.per_iteration,
            "bytes": k.bytes_accessed,
            "time_us": us_json(k.us),
            "floor": k.is_floor,
            "measured_us": None,
        }
        for k in kernels
    ]


def created_by_json(m: CreatedBy) -> dict[str, Any]:
    """What a pass before fusion tells of its work; `flag` leaves the pass out."""
    return {
        "pass": m.pass_name,
        "rule": m.rule.code,
        "flag": m.rule.flag or None,
        "reason": m.reason,
        "from": list(m.removed),
        "about": list(m.created),
    }


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
        "made_by": created_by_json(r.created_by[0]) if r.created_by else None,
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
