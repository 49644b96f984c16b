"""`hlofuse check --format json`; the fields are described in docs/json.md."""

from dataclasses import asdict
from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.check.model import (
    BaselineKernel,
    Check,
    Figures,
    Finding,
    ModuleCheck,
    RefusedEdge,
    Where,
)
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.verdict.json import verdict_json

SCHEMA = "hlofuse.check/1"


def check_json(check: Check) -> dict[str, Any]:
    """Everything that was found."""
    return {
        "schema": SCHEMA,
        **fields(check, "failed baseline updated what_if"),
        **({"approximate": list(check.notes)} if check.notes else {}),
        "modules": [_module(m) for m in check.modules],
        "others": [_finding(f) for f in check.others],
    }


def _module(m: ModuleCheck) -> dict[str, Any]:
    p = m.profile
    return {
        "module": p.name,
        "file": m.file,
        **fields(p, "target device xla=release?"),
        "failed": m.failed,
        "figures": _figures(p.figures),
        "baseline": _figures(m.baseline.figures) if m.baseline is not None else None,
        "baseline_xla": (m.baseline.release or None) if m.baseline is not None else None,
        "loops": [asdict(loop) for loop in p.loops],
        "kernels": [_kernel(k) for k in p.kernels],
        "findings": [_finding(f) for f in m.findings],
        **({"profile": profile_json(p.measured)} if p.measured is not None else {}),
        **(verdict_json(m.verdict) if m.verdict is not None else {}),
    }


def _figures(f: Figures) -> dict[str, Any]:
    return fields(f, "kernels bytes us measured_us")


def _where(w: Where) -> dict[str, Any] | None:
    if not w.file:
        return None
    return fields(w, "file line? function? layer?")


def _kernel(k: BaselineKernel) -> dict[str, Any]:
    names = {"name": k.name or None, "input_name": k.input_name or None}
    return {**names, "what": k.what, "where": _where(k.where)}


def _finding(f: Finding) -> dict[str, Any]:
    return {
        **fields(f, "code=code.value level=level.value module message"),
        "where": _where(f.where),
        **fields(f, "before now", _kernel),
        "held": [_refused_edge(h) for h in f.refused_edges],
    }


def _refused_edge(h: RefusedEdge) -> dict[str, Any]:
    return {
        **fields(h, "rule title reason=message?"),
        "producer": h.producer.final or h.producer.name,
        "producer_input_name": h.producer.name,
        "consumer": h.consumer and (h.consumer.final or h.consumer.name),
        "consumer_input_name": h.consumer and h.consumer.name,
        "where": _where(h.where),
        **fields(h, "bytes_between us_at_stake"),
    }
