"""A module after fusion as JSON, in the form of every `explain`; the schema is in docs/json.md."""

from collections.abc import Callable
from typing import Any

from msgspec import to_builtins

from hlofuse.account import Account, KernelTime
from hlofuse.analysis.kernels import outermost_loops
from hlofuse.compilation import Counted
from hlofuse.format.fields import fields
from hlofuse.ir.graph import Instruction
from hlofuse.reports.explain.explain import grouped_kernels, kernels_as_they_are
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
    """The document of `explain`, with `boundaries`: the pairs of kernels and what keeps them apart. `final`
    is what runs of the module, `as_it_is` the module itself."""
    kernels = kernels_as_they_are(final, None if f.selected is None else {k.name for k in f.kernels})
    rows = {k.place.name: final.by_name[k.place.name] for k in kernels}
    hot = grouped_kernels(((rows[k.place.name], k.place) for k in kernels), time_of)
    chosen = (SelectedKernel(k, time_of(rows[k.place.name].instruction), (), ()) for k in kernels)
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
        loops=outermost_loops(final.module),
        selected=None if f.selected is None else Selection(f.selected, tuple(chosen)),
        counted=counted,
    )
    document = explanation_json(explanation)
    contents = {k.name: fields(k, "opcode opcodes fusion_kind=kind") for k in f.kernels}
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
