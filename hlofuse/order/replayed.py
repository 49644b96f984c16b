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


def with_played_order(
    module: Module, unoptimized: Module, target: str, device: DeviceDescription | None
) -> Module | None:
    """A copy of `module` as old, and with users in the order, as the passes leave `unoptimized`.

    None where what they leave is another module. HlofuseError where calls would multiply beyond reason.
    """
    played = lower_to_fusion_input(unoptimized, target, device, without=_left_out(module))
    copy = copy_module(module)
    twins = counterparts(played.module, copy)
    if twins is None:
        return None
    _take_ages(twins, copy)
    for mine, twin in twins.items():
        known = dict.fromkeys(twins[u] for u in mine.users if u in twins)
        twin.users[:] = [*known, *(u for u in twin.users if u not in known)]
    copy.order_source = "replayed"
    return copy


def _left_out(module: Module) -> tuple[str, ...]:
    """A module compiled where there was no GPU has its sorts, be CUB's faster: XLA has no table of them."""
    instructions = [x for c in module.computations for x in c]
    if any(is_radix_sort(x) for x in instructions) or not any(x.opcode == "sort" for x in instructions):
        return ()
    return (SortRewriter.name,)


def _take_ages(twins: dict[Instruction, Instruction], module: Module) -> None:
    age = {twin: mine.id for mine, twin in twins.items()}
    for computation in module.computations:
        # An unread element is as old as what it is taken from.
        known = {i: age.get(i, age.get(i.operands[0], 0) if i.operands else 0) for i in computation}
        computation.reorder(sorted(known, key=known.__getitem__))
