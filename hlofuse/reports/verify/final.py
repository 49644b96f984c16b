"""One module up to what is launched: replay it and compare the kernels with those of XLA's final module."""

from __future__ import annotations

import time

from hlofuse.inputs.stage import doubt
from hlofuse.ir.graph import Module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.pipelines import TARGETS
from hlofuse.replay import ReplayConfig, ReplayInput, replay
from hlofuse.reports.verify.final_kernels import compare_final
from hlofuse.reports.verify.model import FirstDifference, Verdict


def verify_final(
    before: Module,
    final: Module,
    *,
    name: str | None = None,
    config: ReplayConfig,
    ids: UniqueIds | None = None,
) -> Verdict:
    """Replay `before` up to what is launched and compare with `final`, XLA's module after all passes."""
    start = time.perf_counter()
    target = config.target
    actual = replay(ReplayInput(before, ids), config)
    end = actual.final
    seconds = time.perf_counter() - start
    found = compare_final(end.module, final, TARGETS[target].backend)
    difference = None
    if found.only_xla or found.only_actual:
        first = (*found.only_actual, None)[0], (*found.only_xla, None)[0]
        difference = FirstDifference(None, *first)
    notes = [doubt(before, "BEFORE", target)] if not found.agrees else []
    if not found.agrees and end.not_repeated:
        notes.append(f"Not repeated: {', '.join(end.not_repeated)}.")
    if not found.agrees and not final.is_scheduled:
        notes.append("AFTER does not show the module after all optimizations.")
    return Verdict(
        name or before.name,
        found.agrees,
        found.agrees,
        (),
        found.named,
        found.kernels,
        found.kernels,
        difference,
        None,
        seconds,
        note=" ".join(filter(None, notes)) or None,
        order=actual.order_source,
        final=found,
    )
