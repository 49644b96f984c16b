"""`explain --format json`; the schema is in docs/json.md."""

from dataclasses import asdict
from typing import Any

from hlofuse.format.paths import layer_of
from hlofuse.reports.common.costs import kernel_json, step_json
from hlofuse.reports.common.json import (
    created_by_json,
    kernels_json,
    place_json,
    refusal_json,
    totals_json,
    us_json,
)
from hlofuse.reports.explain.model import (
    BlockingRule,
    Explanation,
    FusedGroup,
    HotKernel,
    PassStory,
    Selection,
)

SCHEMA = "hlofuse.explain/2"


def explanation_json(e: Explanation, *, only_refused: bool = False) -> dict[str, Any]:
    """The explanation as JSON values, complete: limits are for people."""
    return {
        "schema": SCHEMA,
        "module": e.module,
        "file": e.filename,
        "target": e.target,
        "device": e.device,
        "release": e.release,
        "what_if": list(e.what_if),
        "ties": e.ties,
        "record": None if e.record is None else asdict(e.record),
        "totals": totals_json(e.after),
        "kernels": kernels_json(e.kernels),
        "before": totals_json(e.before),
        "after": totals_json(e.after),
        "passes": [_pass(p, only_refused) for p in e.passes],
        "before_fusion": [_pass(p, only_refused) for p in e.earlier],
        "after_fusion": [_pass(p, only_refused) for p in e.later],
        "dearest": [_hot_kernel(k) for k in e.hot_kernels if k.us],
        "loops": [asdict(loop) for loop in e.loops],
        "obstacles": [_blocking_rule(o) for o in e.blocking_rules],
        "selected": None if e.selected is None else _selection(e.selected),
        "rules": {
            code: {"title": r.title, "message": r.message, "advice": r.advice} for code, r in e.rules.items()
        },
    }


def _selection(s: Selection) -> dict[str, Any]:
    return {
        "name": s.name,
        "kernels": [
            {
                "name": k.kernel.place.final or k.kernel.place.name,
                "input_name": k.kernel.input_name,
                "operations": list(k.operations),
                "kernel": kernel_json(k.time),
                "made_by": [created_by_json(m) for m in k.created_by],
            }
            for k in s.kernels
        ],
    }


def _hot_kernel(k: HotKernel) -> dict[str, Any]:
    return {
        "first": place_json(k.place),
        "layer": layer_of(k.place.op_name),
        "us": us_json(k.us),
        "floor": k.is_floor,
        "count": k.count,
        "turns": k.iterations,
        "kernel": kernel_json(k.kernel),
    }


def _pass(p: PassStory, only_refused: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": p.name, "changed": p.changed, "decisions": p.decisions}
    if not only_refused:
        out["fused"] = [_group(g) for g in p.fused]
        out["rewritten"] = [
            {
                "step": r.step,
                "from": list(r.removed),
                "to": list(r.added),
                "rule": r.rule,
                "reason": r.reason,
                "source": r.source,
            }
            for r in p.rewrites
        ]
    out["refused"] = [refusal_json(r) for r in p.refused]
    return out


def _group(g: FusedGroup) -> dict[str, Any]:
    return {
        "fusion": place_json(g.fusion),
        "computation": g.computation,
        "bytes_saved": g.bytes_saved,
        "us_saved": us_json(g.us_saved),
        "kernel": kernel_json(g.kernel),
        "holds": list(g.holds),
        "steps": [
            {
                "step": s.step,
                "producer": place_json(s.producer),
                "consumer": s.consumer,
                "fusion": s.fusion,
                "created": s.created,
                "duplicated": s.duplicated,
                "kind": s.kind,
                "rule": s.rule,
                "reason": s.reason,
                "figures": s.figures,
                "cost": step_json(s.cost),
                "us_saved": us_json(s.us_saved),
                "tied_with": list(s.tied_with),
            }
            for s in g.steps
        ],
    }


def _blocking_rule(o: BlockingRule) -> dict[str, Any]:
    return {
        "rule": o.rule.code,
        "title": o.rule.title,
        "advice": o.rule.advice,
        "edges": o.edges,
        "bytes_between": o.bytes_between,
        "us_at_stake": us_json(o.us_at_stake),
        "pairs": [[r.producer.name, r.consumer] for r in o.refusals],
    }
