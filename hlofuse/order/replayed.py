"""The order in which XLA's memory has a module, from repeating the passes that made it.

PriorityFusion breaks ties by ids and visits users in the order of XLA's use-lists. No text carries either.
Both follow from the passes before fusion, repeated on the module before optimizations.
"""

from hlofuse.analysis.custom_calls import is_radix_sort
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Instruction, Module
from hlofuse.matching.exact import counterparts
from hlofuse.passes.sort.sort_rewriter import SortRewriter
from hlofuse.pipelines.manager import lower_to_fusion_input


def with_replayed_order(
    module: Module,
    unoptimized: Module,
    target: str,
    device: DeviceDescription | None,
    flags: tuple[str, ...] = (),
) -> Module | None:
    """A copy of `module` with the ids and use-lists that the passes before fusion give `unoptimized`.

    None where these passes give another module. Raises `HlofuseError` for excessive growth by inlining.
    """
    replayed = lower_to_fusion_input(unoptimized, target, device, without=_left_out(module), flags=flags)
    copy = copy_module(module)
    copies = counterparts(replayed.module, copy)
    if copies is None:
        return None
    _take_ids(copies, copy)
    for original, own in copies.items():
        ordered = dict.fromkeys(copies[u] for u in original.users if u in copies)
        own.users[:] = [*ordered, *(u for u in own.users if u not in ordered)]
    copy.order_source = "replayed"
    return copy


def _left_out(module: Module) -> tuple[str, ...]:
    """Passes that did not run: without a GPU, XLA has no table of CUB's speeds and keeps its sorts."""
    instructions = [x for c in module.computations for x in c]
    if any(is_radix_sort(x) for x in instructions) or not any(x.opcode == "sort" for x in instructions):
        return ()
    return (SortRewriter.name,)


def _take_ids(copies: dict[Instruction, Instruction], module: Module) -> None:
    id_of = {own: original.id for original, own in copies.items()}
    for computation in module.computations:
        # An unread element is as old as what it is taken from.
        ordered = {i: id_of.get(i, id_of.get(i.operands[0], 0) if i.operands else 0) for i in computation}
        computation.reorder(sorted(ordered, key=ordered.__getitem__))
