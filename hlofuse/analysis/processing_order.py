"""In which order do passes go through a module's computations? (`HloModule::MakeNonfusionComputations`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hlofuse.analysis.call_order import CallOrder, caller_of
from hlofuse.ir.graph import Computation, Module


def non_fusion_computations(module: Module) -> list[Computation]:
    """Those that are not a fusion's body, in the order of the dump, the entry last.

    XLA keeps a topological order that depends on how earlier passes made the computations and that no
    dump tells. This is the closest: decisions are the same in any order, and only the numbers in the names of
    fusions in computations that do not call each other can differ (docs/fidelity.md).
    """
    others = [c for c in module.computations if c.fusion is None and c is not module.entry]
    return [*others, module.entry]


def with_changed_behind(
    order: Iterable[Computation], changed: Collection[Computation], *, is_backward: bool = False
) -> list[Computation]:
    """The order that a pass leaves which goes through computations and has these call something new.

    It goes backward if the last computation is the first that it comes to.
    """
    listed = [*order]
    kept = CallOrder(listed, caller_of)
    for computation in reversed(listed) if is_backward else listed:
        if computation in changed:
            kept.call_new(computation)
    return kept.listed()
