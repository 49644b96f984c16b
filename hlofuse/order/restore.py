"""Restores the order in which XLA's fusion passes find a module."""

import re
from typing import TYPE_CHECKING

from hlofuse.ir import Instruction, Module, OrderSource, copy_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.matching.pairs import counterparts
from hlofuse.releases import Release

if TYPE_CHECKING:
    from hlofuse.pipelines.targets import Target


def source_of(module: Module, target: "Target", ids: UniqueIds | None = None) -> OrderSource:
    """The source of the order that `restore` gives a module for a target."""
    if target.has_history:
        return "xla" if ids is not None else module.order_source or "estimated"
    if target.restores_use_lists:
        return "text" if module.order_source == "text" else "estimated"
    return "text"


def is_open(source: OrderSource) -> bool:
    """True if XLA may have broken ties between equal priorities in another way."""
    return source in ("estimated", "text")


def restore(module: Module, target: "Target", release: Release, ids: UniqueIds | None = None) -> None:
    """Give the module ids and use-lists, and reserve the names that earlier passes spent. `ids` are XLA's.
    Without them the module's own order source is applied already, or an estimate is made. Priority fusion
    keeps the use-lists of the text or of the repeated passes. In releases whose last passes before it left
    others (`users_by_layout_passes`), and without priority fusion, they are estimated."""
    source = source_of(module, target, ids)
    if target.has_history:
        if ids is not None:
            ids.apply(module)
            ids.give_metadata(module)
        elif source == "estimated":
            from .estimate import estimate_order

            estimate_order(module)
        if release.priority_fusion_renames:
            reserve_counted_names(module)
        else:
            module.instruction_names.reserve(
                [name for i in module.instructions() if (name := _name_before_renaming(i.name))]
            )
    estimates = target.restores_use_lists or (target.has_history and release.users_by_layout_passes)
    if estimates and source != "text":
        from .legacy.restore import restore_users_order

        restore_users_order(module)
    if target.depends_on_order:
        module.instruction_names.reserve([f"fusion.{k}" for k in range(spent_fusion_names(module))])
    module.order_source = source


_GAP = 8
_SOFTMAX = re.compile(r"triton_softmax(?:_computation)?(?:\.(\d+))?")


def _name_before_renaming(name: str) -> str | None:
    """The old name, which stays spent: `rename-instructions` before fusion appended .0."""
    root, dot, number = name.rpartition(".")
    if not dot or not number.isdecimal():
        return None
    # A name without a number got the first free one: it had asked for 0.
    return root if number == "0" else f"{root}.0"


def reserve_counted_names(module: Module) -> None:
    """Reserve the counted names of removed instructions. A bare opcode as a name shows that passes counted.
    Then they took the first numbers, up to a gap: those of the front end are as large as the program."""
    numbers = dict[str, set[int]]()
    for instruction in module.instructions():
        opcode = instruction.opcode
        root, _, number = instruction.name.rpartition(".")
        if instruction.name == opcode:
            numbers.setdefault(opcode, set()).add(0)
        elif root == opcode and number.isdecimal():
            numbers.setdefault(opcode, set()).add(int(number))
    for root, taken in numbers.items():
        if 0 not in taken:
            continue
        last = 0
        for spent in sorted(taken):
            if spent - last > _GAP:
                break
            last = spent
        if root == "reduce":
            last += sum(_has_replaced(i) for i in module.instructions() if i.is_reduce)
        module.instruction_names.reserve([f"{root}.{k}" for k in range(1, last + 1) if k not in taken])


def _has_replaced(reduction: Instruction) -> bool:
    """True if it briefly had its own name before it took that of the replaced one. This holds for grouped
    reductions (`ReductionDimensionGrouper`) and the second half of split ones (`TreeReductionRewriter`)."""
    operand = reduction.operand
    if operand.is_bitcast:
        return _extents(operand) < _extents(operand.operand)
    return operand.is_reduce and operand.name.rpartition(".")[0] in ("", "reduce")


def _extents(instruction: Instruction) -> int:
    return sum(d > 1 for d in instruction.sizes)


def spent_fusion_names(module: Module) -> int:
    """The number of names fusion, fusion.1, … spent so far. Every fusion is named so when created and renamed
    afterwards. Abandoned softmax fusions show in the numbers of those that stayed, or in their computations,
    which remain, without callers, until PriorityFusion ends."""
    others, softmax = 0, 0
    for computation in module.computations:
        if match := _SOFTMAX.fullmatch(computation.name):
            softmax = max(softmax, int(match[1] or 0) + 1)
        for instruction in computation:
            if not instruction.is_fusion:
                continue
            if match := _SOFTMAX.fullmatch(instruction.name):
                softmax = max(softmax, int(match[1] or 0) + 1)
            else:
                others += 1
    return others + softmax


def with_replayed_order(module: Module, lowered: Module) -> Module | None:
    """A copy of `module` with ids and use-lists of `lowered`, of the repeated passes; None if they differ."""
    copy = copy_module(module)
    copies = counterparts(lowered, copy)
    if copies is None:
        return None
    id_of = {own: original.id for original, own in copies.items()}
    for computation in copy.computations:
        # An unread element is as old as what it is taken from.
        ids = {i: id_of.get(i, id_of.get(i.operand, 0) if i.operands else 0) for i in computation}
        computation.reorder(sorted(ids, key=ids.__getitem__))
    for original, own in copies.items():
        ordered = dict.fromkeys(copies[u] for u in original.users if u in copies)
        own.users[:] = [*ordered, *(u for u in own.users if u not in ordered)]
    copy.order_source = "replayed"
    return copy
