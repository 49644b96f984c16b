"""Arrays without elements are constants (`xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.cc`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import is_safely_removable, replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import attempt
from hlofuse.trace import Recorder

_GLOBAL_SHAPE = "xla.sdy.LocalToGlobalShape"


class ZeroSizedHloElimination(Pass):
    name = "zero_sized_hlo_elimination"

    def run(self, module: Module, recorder: Recorder) -> bool:
        attempted = attempt(_eliminated, recorder)
        changed = False
        for computation in module.non_fusion_computations():
            if not any(0 in x.shape.dimensions for x in computation):
                continue
            for x in computation.post_order():
                changed |= x.shape.is_array and 0 in x.shape.dimensions and attempted(x)
        return changed


def _eliminated(x: Instruction) -> bool:
    if x.opcode == "constant" or x.shape.dynamic_dimensions:
        return False
    if has_side_effect(x) and x.attributes.get("custom_call_target") != _GLOBAL_SHAPE:
        return False
    is_parameter = x.opcode == "parameter"
    if is_parameter:
        if not x.users or x.control_predecessors or x.control_successors:
            return False
    elif not is_safely_removable(x):
        return False
    constant = make.constant(x, x.shape, [])
    if is_parameter:
        x.replace_all_uses_with(constant)
        return True
    return replace_instruction(x, constant, has_side_effect)
