"""What XLA:TPU fused, as JSON; the schema is in docs/stages.md."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.tpu.model import TpuPair

SCHEMA = "hlofuse.explain-tpu/1"


def tpu_json(p: TpuPair) -> dict[str, Any]:
    """Everything; `docs/stages.md` says what the fields mean."""
    return {
        "schema": SCHEMA,
        **fields(p, "module before after"),
        "kernels": {"before": p.kernels_before, "after": p.kernels_after, **p.kernels_elsewhere},
        "gpu_device": p.device,
        "fusions": [
            {
                "kind": str(c.kind),
                "before": [i.name for i in c.before],
                "after": [i.name for i in c.after],
                "members": [i.name for i in c.members],
                "joined": [i.name for i in c.joined],
            }
            for c in p.changes
        ],
        "pairs": [
            {
                **fields(e, "producer consumer bytes_between"),
                "fused": {"tpu": e.on_tpu, **e.elsewhere},
                "rules": e.rules,
            }
            for e in p.edges
        ],
        "pairs_changed_by_other_passes": p.changed,
        "rules": {code: rule.title for code, rule in p.rules.items()},
    }
