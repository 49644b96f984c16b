"""Sorts without the operands that nothing reads (`xla/hlo/transforms/simplifiers/sort_simplifier.cc`)."""

from __future__ import annotations

from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.calls import clone_computation, drop
from hlofuse.passes.common.make import added
from hlofuse.trace import Recorder


class SortSimplifier(Pass):
    name = "simplify-sorts"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        sorts = [i for c in module.non_fusion_computations() for i in c if i.opcode == "sort"]
        for sort in sorts:
            changed |= _without_unread(sort)
        return changed


def _without_unread(sort: Instruction) -> bool:
    if not sort.shape.is_tuple or sort.is_root:
        return False
    if any(user.opcode != "get-tuple-element" for user in sort.users):
        return False
    compare = sort.called_computations[0]
    read = {user.tuple_index for user in sort.users}
    read |= {p.parameter_number // 2 for p in compare if p.opcode == "parameter" and p.users}
    if len(read) == len(sort.operands) or not read:
        return False
    remaining = sorted(read)
    operands = [sort.operands[k] for k in remaining]
    new = clone_of(sort, operands)
    new.shape = operands[0].shape if len(remaining) == 1 else Shape.tuple_of([o.shape for o in operands])
    clone = clone_computation(compare)
    for parameter in list(clone.parameters):
        operand, side = divmod(parameter.parameter_number, 2)
        if operand in read:
            parameter.payload = str(2 * remaining.index(operand) + side)
        else:
            clone.remove_instruction(parameter)
    clone.parameters[:] = [p for p in clone.parameters if p.computation is clone]
    new.called = [("to_apply", clone)]
    new.attributes = new.attributes.without("to_apply").updated(to_apply=f"%{clone.name}")
    computation_of(sort).add_instruction(new)
    results = {remaining[0]: new}
    if len(remaining) > 1:
        results = {
            k: added(sort, "get-tuple-element", o.shape, [new], index=str(place))
            for place, (k, o) in enumerate(zip(remaining, operands, strict=True))
        }
    for user in list(sort.users):
        user.replace_all_uses_with(results[user.tuple_index])
        drop(user)
    return True
