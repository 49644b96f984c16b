"""A module after fusion as JSON, in the form of every `explain`; the schema is in docs/json.md."""

from collections.abc import Callable
from typing import Any

from msgspec import to_builtins

from hlofuse.account import Account, KernelTime
from hlofuse.compilation import Counted
from hlofuse.format.fields import fields
from hlofuse.ir.graph import Instruction
from hlofuse.reports.common.facts import final_kernel, place_of
from hlofuse.reports.explain.explain import grouped_kernels
from hlofuse.reports.explain.json import explanation_json
from hlofuse.reports.explain.model import Explanation, SelectedKernel, Selection
from .model import Fused
from .text import by_rule, bytes_between


def fused_json(
    f: Fused,
    final: Account,
    as_it_is: Account,
    counted: Counted,
    time_of: Callable[[Instruction], KernelTime | None],
) -> dict[str, Any]:
    """The document of `explain`: what runs (`final`), and in `boundaries` what keeps it apart."""
    contents = {k.name: fields(k, "opcode opcodes fusion_kind=kind") for k in f.kernels}
    rows = [(r, r.instruction) for r in final.rows if f.selected is None or r.instruction.name in contents]
    kernels = tuple(final_kernel(r, place_of(x, final.module), x.name) for r, x in rows)
    hot = grouped_kernels(((r, k.place) for k, (r, _) in zip(kernels, rows, strict=True)), time_of)
    chosen = (SelectedKernel(k, time_of(x), (), ()) for k, (_, x) in zip(kernels, rows, strict=True))
    explanation = Explanation(
        f.module,
        final.module.filename,
        f.target,
        f.device,
        f.evidence,
        f.release,
        (),
        as_it_is.totals,
        final.totals,
        (),
        (),
        f.rules,
        hot_kernels=hot,
        kernels=kernels,
        loops=final.loops,
        selected=None if f.selected is None else Selection(f.selected, tuple(chosen)),
        counted=counted,
    )
    document = explanation_json(explanation)
    document["kernels"] = [{**k, **contents.get(k["name"], {})} for k in document["kernels"]]
    document["obstacles"] = [
        {
            **fields(f.rules[code], "rule=code title advice"),
            "edges": len(own),
            "bytes_between": bytes_between(own),
            "us_at_stake": None,
            "pairs": [[b.producer, b.consumer] for b in own],
        }
        for code, own in by_rule(f)
        if code in f.rules
    ]
    document |= fields(f, "evidence how right_file")
    return {**document, **fields(f, "boundaries", to_builtins)}
