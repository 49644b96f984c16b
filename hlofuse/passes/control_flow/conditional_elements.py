"""Elements that a conditional gives or takes for nothing (`xla/service/conditional_simplifier.cc`)."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.fusing import set_tuple_index
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.cloning import clone_computation, set_called


def merge_duplicates(x: Instruction) -> bool:
    """`MergeDuplicateTupleElements`: results that are the same in every branch are read as the first."""
    roots = [branch.root for branch in x.called_computations]
    if not _gives_only_elements(x) or any(root.opcode != "tuple" for root in roots):
        return False
    first: dict[tuple[Instruction, ...], int] = {}
    instead = {
        k: first.setdefault(tuple(root.operands[k] for root in roots), k)
        for k in range(len(x.shape.tuple_shapes))
    }
    changed = False
    for user in x.users:
        if instead[user.tuple_index] != user.tuple_index:
            set_tuple_index(user, instead[user.tuple_index])
            changed = True
    return changed


def remove_unused_results(x: Instruction) -> bool:
    """`RemoveUnusedTupleElements`."""
    if not _gives_only_elements(x):
        return False
    kept = sorted({user.tuple_index for user in x.users})
    if len(kept) == len(x.shape.tuple_shapes):
        return False
    called = []
    for name, branch in x.called:
        copy = clone_computation(branch)
        elements = [make.get_tuple_element(copy.root, copy.root, k) for k in kept]
        copy.root = make.tuple_of(copy.root, elements)
        called.append((name, copy))
    set_called(x, called)
    x.shape = Shape.tuple_of([x.shape.tuple_shapes[k] for k in kept])
    for user in x.users:
        set_tuple_index(user, kept.index(user.tuple_index))
    return True


def _gives_only_elements(x: Instruction) -> bool:
    is_read = bool(x.users) and not x.is_root and x.shape.is_tuple
    return is_read and all(user.opcode == "get-tuple-element" for user in x.users)


def empty_unread(x: Instruction) -> bool:
    """`ReplaceRootWithEmptyTupleIfNoUsers`."""
    if x.users or x.is_root or (x.shape.is_tuple and not x.shape.tuple_shapes):
        return False
    called = []
    for name, branch in x.called:
        copy = clone_computation(branch)
        copy.root = make.tuple_of(copy.root, [])
        called.append((name, copy))
    set_called(x, called)
    x.shape = Shape.tuple_of([])
    return True


def remove_unused_operands(branch: Computation, conditionals: Sequence[Instruction]) -> bool:
    """`TryRemoveUnusedConditionalOperands`, for all that choose this branch."""
    parameter = branch.parameters[0]
    if parameter.is_root or not parameter.shape.is_tuple:
        return False
    if any(user.opcode != "get-tuple-element" for user in parameter.users):
        return False
    kept = sorted({user.tuple_index for user in parameter.users})
    if len(kept) == len(parameter.shape.tuple_shapes):
        return False
    copy = clone_computation(branch)
    taken = copy.parameters[0]
    taken.shape = Shape.tuple_of([taken.shape.tuple_shapes[k] for k in kept])
    for user in taken.users:
        set_tuple_index(user, kept.index(user.tuple_index))
    for x in conditionals:
        for number, (_, chosen) in enumerate(x.called):
            if chosen is not branch:
                continue
            called = list(x.called)
            called[number] = (called[number][0], copy)
            set_called(x, called)
            given = x.operands[number + 1]
            elements = [make.get_tuple_element(x, given, k) for k in kept]
            x.replace_operand(number + 1, make.tuple_of(x, elements))
    return True
