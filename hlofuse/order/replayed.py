"""The order in which XLA's memory holds a module, from repeating the passes that made it.

PriorityFusion breaks ties by age and goes through users in the order of XLA's lists. No text carries
either, but both come of what the passes ahead of fusion did, in order, to the module before optimizations.
"""

from __future__ import annotations

from hlofuse.analysis.counterparts import counterparts
from hlofuse.analysis.custom_calls import is_radix_sort
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.sort.sort_rewriter import SortRewriter
from hlofuse.pipelines.manager import lower_to_fusion_input


def with_replayed_order(
    module: Module, unoptimized: Module, target: str, device: DeviceDescription | None
) -> Module | None:
    """A copy of `module` as old, and with users in the order, as the passes leave `unoptimized`.

    None where what they leave is another module. HlofuseError where calls would multiply beyond reason.
    """
    replayed = lower_to_fusion_input(unoptimized, target, device, without=_left_out(module))
    copy = copy_module(module)
    counterparts_ = counterparts(replayed.module, copy)
    if counterparts_ is None:
        return None
    _take_ids(counterparts_, copy)
    for replayed_one, copy_ in counterparts_.items():
        ordered = dict.fromkeys(counterparts_[u] for u in replayed_one.users if u in counterparts_)
        copy_.users[:] = [*ordered, *(u for u in copy_.users if u not in ordered)]
    copy.order_source = "replayed"
    return copy


def _left_out(module: Module) -> tuple[str, ...]:
    """A module compiled where there was no GPU has its sorts, be CUB's faster: XLA has no table of them."""
    instructions = [x for c in module.computations for x in c]
    if any(is_radix_sort(x) for x in instructions) or not any(x.opcode == "sort" for x in instructions):
        return ()
    return (SortRewriter.name,)


def _take_ids(counterparts_: dict[Instruction, Instruction], module: Module) -> None:
    id_of = {copy_: replayed_one.id for replayed_one, copy_ in counterparts_.items()}
    for computation in module.computations:
        # An unread element is as old as what it is taken from.
        ordered = {i: id_of.get(i, id_of.get(i.operands[0], 0) if i.operands else 0) for i in computation}
        computation.reorder(sorted(ordered, key=ordered.__getitem__))
