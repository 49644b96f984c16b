"""`kernels --format json`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.json import created_by_json, measured_json, time_kind
from hlofuse.reports.kernels.model import Choice, KernelSelection

SCHEMA = "hlofuse.kernels/3"


def selection_json(s: KernelSelection) -> dict[str, Any]:
    rules = {r.code: r for k in s.kernels for r in k.rules}
    return {
        "schema": SCHEMA,
        **fields(s, "module file target device release replayed what_if selected"),
        "runners": [fields(r, "run_by=name kernels us bytes_accessed") for r in s.runners],
        "kernels": [_kernel(k) for k in s.kernels],
        "rules": {
            code: fields(r, "title asks=condition why advice run_by=runs")
            for code, r in sorted(rules.items())
        },
    }


def _kernel(k: Choice) -> dict[str, Any]:
    return {
        "name": k.final or k.name,
        **fields(k, "input_name=name opcode shape kind computation run_by rule=code"),
        "figures": dict(k.figures),
        "notes": [{"rule": n.rule.code, "title": n.rule.title, "figures": dict(n.figures)} for n in k.notes],
        **fields(k, "heroes blocks threads us time_us=us floor=is_floor runs bytes_accessed source"),
        "time_kind": time_kind(k.us, k.is_floor),
        **measured_json(k.measured),
        "made_by": [created_by_json(m) for m in k.created_by],
    }
