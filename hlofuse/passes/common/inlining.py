"""A body in the place of its call (`xla/service/call_inliner.cc`)."""

from __future__ import annotations

from hlofuse.ir.fusing import clone_of, computation_of, module_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.removing import move_control_dependencies
from hlofuse.passes.common.call_metadata import hand_on_metadata


def inline(call: Instruction) -> None:
    """Clones of the body, of which the last takes over from the call (`SubcomputationInsertionVisitor`)."""
    computation, body = computation_of(call), call.called_computations[0]
    module = module_of(computation)
    clones: dict[Instruction, Instruction] = {}
    # What nobody reads comes first, however young it is (`HloComputation::Accept`).
    for inner in body.post_order(starts=[*body.unreachable_roots(), body.root]):
        if inner.opcode == "parameter":
            clones[inner] = call.operands[inner.parameter_number]
            continue
        clone = computation.add_instruction(clone_of(inner, [clones[o] for o in inner.operands]))
        clones[inner] = clone
        hand_on_metadata(call, clone, module)
        for predecessor in inner.control_predecessors:
            clones[predecessor].add_control_dependency_to(clone)
        for predecessor in call.control_predecessors:
            predecessor.add_control_dependency_to(clone)
    root = clones[body.root]
    move_control_dependencies(call, root)
    call.replace_all_uses_with(root)
    computation.remove_instruction(call)
