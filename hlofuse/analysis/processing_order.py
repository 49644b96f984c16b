"""In which order do passes go through a module's computations? (`HloModule::MakeNonfusionComputations`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import count

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


def with_changed_behind(
    order: Iterable[Computation], changed: Collection[Computation], *, is_backward: bool = False
) -> list[Computation]:
    """The order that a pass leaves which goes through computations and has these call something new.

    A computation that calls what is new goes behind everything, and then all that it is called by
    (`TopologicalSort::AddEdge` of `xla/online_topsort.h`).
    """
    time = count()
    since = {computation: next(time) for computation in order}
    for computation in reversed([*since]) if is_backward else [*since]:
        caller = computation if computation in changed else None
        while caller is not None:
            since[caller] = next(time)
            caller = caller.first_caller.computation if caller.first_caller is not None else None
    return sorted(since, key=since.__getitem__)
