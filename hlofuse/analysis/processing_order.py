"""In which order do passes go through a module's computations? (`HloModule::MakeNonfusionComputations`)."""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.module import Module


def non_fusion_computations(module: Module) -> list[Computation]:
    """Those that are not a fusion's body, in the order of the dump, the entry last.

    XLA keeps a topological order that depends on how earlier passes made the computations and that no
    dump tells. This is the closest: decisions are the same in any order, and only the numbers in the names of
    fusions in computations that do not call each other can differ (docs/fidelity.md).
    """
    others = [c for c in module.computations if c.fusion is None and c is not module.entry]
    return [*others, module.entry]
