"""`kernels --format json`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.reports.common.json import created_by_json
from hlofuse.reports.kernels.model import Choice, KernelSelection

SCHEMA = "hlofuse.kernels/2"


def selection_json(s: KernelSelection) -> dict[str, Any]:
    """The whole report as JSON values."""
    rules = {r.code: r for k in s.kernels for r in (k.rule, *(n.rule for n in k.notes))}
    return {
        "schema": SCHEMA,
        "module": s.module,
        "file": s.file,
        "target": s.target,
        "device": s.device,
        "release": s.release,
        "replayed": s.replayed,
        "what_if": list(s.what_if),
        "selected": s.selected,
        "runners": [
            {"run_by": r.name, "kernels": r.kernels, "us": r.us, "bytes_accessed": r.bytes_accessed}
            for r in s.runners
        ],
        "kernels": [_kernel(k) for k in s.kernels],
        "rules": {
            code: {"title": r.title, "asks": r.condition, "why": r.why, "advice": r.advice, "run_by": r.runs}
            for code, r in sorted(rules.items())
        },
    }


def _kernel(k: Choice) -> dict[str, Any]:
    return {
        "name": k.final or k.name,
        "input_name": k.name,
        "opcode": k.opcode,
        "shape": k.shape,
        "kind": k.kind,
        "computation": k.computation,
        "run_by": k.run_by,
        "rule": k.rule.code,
        "figures": dict(k.figures),
        "notes": [{"rule": n.rule.code, "title": n.rule.title, "figures": dict(n.figures)} for n in k.notes],
        "heroes": list(k.heroes),
        "blocks": k.blocks,
        "threads": k.threads,
        "us": k.us,
        "floor": k.is_floor,
        "runs": k.runs,
        "bytes_accessed": k.bytes_accessed,
        "source": k.source,
        "made_by": [created_by_json(m) for m in k.created_by],
    }
