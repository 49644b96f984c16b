"""The order in which XLA's memory has a module, from repeating the passes that made it.

PriorityFusion breaks ties by ids and visits users in the order of XLA's use-lists. No text carries either.
Both follow from the passes before fusion, repeated on the module before optimizations.
"""

from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Instruction, Module
from hlofuse.matching.exact import counterparts


def with_replayed_order(module: Module, lowered: Module) -> Module | None:
    """A copy of `module` with the ids and use-lists of `lowered`, the result of the repeated passes.

    None where these passes give another module.
    """
    copy = copy_module(module)
    copies = counterparts(lowered, copy)
    if copies is None:
        return None
    _take_ids(copies, copy)
    for original, own in copies.items():
        ordered = dict.fromkeys(copies[u] for u in original.users if u in copies)
        own.users[:] = [*ordered, *(u for u in own.users if u not in ordered)]
    copy.order_source = "replayed"
    return copy


def _take_ids(copies: dict[Instruction, Instruction], module: Module) -> None:
    id_of = {own: original.id for original, own in copies.items()}
    for computation in module.computations:
        # An unread element is as old as what it is taken from.
        ordered = {i: id_of.get(i, id_of.get(i.operands[0], 0) if i.operands else 0) for i in computation}
        computation.reorder(sorted(ordered, key=ordered.__getitem__))
