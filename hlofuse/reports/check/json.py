"""`hlofuse check --format json`; the fields are described in docs/json.md."""

from msgspec import to_builtins

from hlofuse.format.fields import fields
from hlofuse.ir.record import Json
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.verdict.json import verdict_json
from .model import BaselineKernel, Check, Figures, Finding, ModuleCheck, RefusedEdge, Where


def check_json(check: Check) -> Json:
    return {
        "schema": "hlofuse.check/3",
        **fields(check, "failed baseline updated what_if"),
        **({"approximate": list(check.notes)} if check.notes else {}),
        **fields(check, "modules", _module),
        **fields(check, "others", _finding),
    }


def _module(m: ModuleCheck) -> Json:
    p = m.profile
    return {
        **fields(m, "module=profile.name file target=profile.target device=profile.device"),
        **fields(m, "xla=profile.release? failed"),
        "figures": _figures(p.figures),
        "baseline": _figures(m.baseline.figures) if m.baseline is not None else None,
        "baseline_xla": (m.baseline.release or None) if m.baseline is not None else None,
        **fields(p, "loops", to_builtins),
        **fields(p, "kernels", kernel_json),
        **fields(m, "findings", _finding),
        **profile_json(p.measured),
        **(verdict_json(m.verdict) if m.verdict is not None else {}),
    }


def _figures(f: Figures) -> Json:
    return fields(f, "kernels bytes us measured_us memory_bytes=memory devices")


def where_json(w: Where) -> Json | None:
    """A place in the program; None where the dump does not say."""
    if not w.file:
        return None
    return fields(w, "file line? function? layer?")


def kernel_json(k: BaselineKernel) -> Json:
    return {**fields(k, "name? input_name? what"), "where": where_json(k.where)}


def _finding(f: Finding) -> Json:
    return {
        **fields(f, "code=code.value level=level.value module message"),
        "where": where_json(f.where),
        **fields(f, "before now", kernel_json),
        **fields(f, "held=refused_edges", refused_edge_json),
    }


def refused_edge_json(h: RefusedEdge) -> Json:
    """A pair that a rule keeps apart, under final names and those at the end of fusion."""
    return {
        **fields(h, "rule title reason=message? producer=producer.label producer_input_name=producer.name"),
        "consumer": h.consumer and h.consumer.label,
        "consumer_input_name": h.consumer and h.consumer.name,
        "where": where_json(h.where),
        **fields(h, "bytes_between us_at_stake"),
    }
