"""Fusions of XLA:TPU as JSON, in the form of every `explain`; the schema is in docs/json.md."""

from typing import Any

from hlofuse.account import Account
from hlofuse.analysis.kernels import outermost_loops
from hlofuse.format.fields import fields
from hlofuse.reports.explain.explain import grouped_kernels, kernels_as_they_are
from hlofuse.reports.explain.json import explanation_json
from hlofuse.reports.explain.model import Explanation
from hlofuse.reports.tpu.model import TpuPair


def tpu_json(p: TpuPair) -> dict[str, Any]:
    """The document of `explain`, with `fusions` and `pairs`: what was fused, and what others would fuse."""
    before, after = (Account(module, backend="tpu") for module in p.modules)
    kernels = kernels_as_they_are(after)
    explanation = Explanation(
        p.module,
        p.before,
        "tpu",
        None,
        "XLA:TPU",
        "TPU's own compiler",
        (),
        before.totals,
        after.totals,
        (),
        (),
        p.rules,
        hot_kernels=grouped_kernels(zip(after.rows, (k.place for k in kernels), strict=True), None),
        kernels=kernels,
        loops=outermost_loops(after.module),
        counted="xla",
    )
    return {
        **explanation_json(explanation),
        "files": fields(p, "before after"),
        "kernel_counts": {"before": p.kernels_before, "after": p.kernels_after, **p.kernels_elsewhere},
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
    }
