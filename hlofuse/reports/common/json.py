"""Places, figures and times as JSON values; the schema is in docs/json.md."""

from __future__ import annotations

from typing import Any

from hlofuse.account import KernelTime, PairDetail, ReadTerm, StepCost
from hlofuse.analysis.cost import Cost
from hlofuse.reports.common.model import Place, Refusal, Totals


def place_json(p: Place) -> dict[str, Any]:
    """An instruction and where it comes from."""
    return {"name": p.name, "opcode": p.opcode, "shape": p.shape, "source": p.source, "op_name": p.op_name}


def totals_json(t: Totals) -> dict[str, Any]:
    """A module as a whole."""
    return {"kernels": t.kernels, "cost": cost_json(t.cost), "us": us_json(t.us), "untimed": t.untimed}


def refusal_json(r: Refusal) -> dict[str, Any]:
    """A final verdict against a pair."""
    return {
        "producer": place_json(r.producer),
        "consumer": r.consumer,
        "consumer_then": r.consumer_then,
        "said_of": r.said_of,
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


def kernel_json(k: KernelTime | None) -> dict[str, Any] | None:
    """An estimate of one kernel."""
    if k is None:
        return None
    return {
        "us": _us(k.us),
        "us_memory": _us(k.us_memory),
        "us_compute": _us(k.us_compute),
        "bound_by": k.bound_by,
        "bytes_read": k.bytes_read,
        "bytes_written": k.bytes_written,
        "flops": k.flops,
        "emitter": k.emitter,
        "blocks": k.blocks,
        "threads": k.threads,
        "coalesced": k.coalesced,
        "tile_sizes": [list(t) for t in k.tile_sizes],
        "tilings": k.tilings,
    }


def step_json(c: StepCost | None) -> dict[str, Any] | None:
    """What one fusion rested on."""
    if c is None:
        return None
    return {
        "us_saved": _us(c.us_saved),
        "bytes_less": c.bytes_less,
        "us_compute_more": _us(c.us_compute_more),
        "consumers": c.consumers,
        "producer_leaves": c.leaves,
        "producer": kernel_json(c.producer),
        "consumer": kernel_json(c.consumer),
        "fused": kernel_json(c.fused),
    }


def detail_json(d: PairDetail | None) -> dict[str, Any] | None:
    """A pair in full."""
    if d is None:
        return None
    return {
        "us_unfused": _us(d.us_unfused),
        "us_fused": _us(d.us_fused),
        "users": d.users,
        "pair": step_json(d.cost),
        "consumer_reads": [_read(r) for r in d.consumer_reads],
        "fused_reads": [_read(r) for r in d.fused_reads],
        "flips": [{"number": f.number, "now": f.now, "value": f.value} for f in d.flips],
        "remarks": list(d.remarks),
    }


def us_json(value: float | None) -> float | None:
    """Microseconds to a quarter of a nanosecond."""
    return None if value is None else _us(value)


def _us(value: float) -> float:
    return round(value, 5)


def _read(r: ReadTerm) -> dict[str, Any]:
    return {
        "operand": r.operand,
        "shape": r.shape,
        "bytes": r.size,
        "bytes_read": r.read,
        "bandwidth_share": round(r.share, 4),
        "us": _us(r.us),
    }
