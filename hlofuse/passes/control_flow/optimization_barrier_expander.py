"""Barriers go at the end (`xla/hlo/transforms/expanders/optimization_barrier_expander.cc`)."""

from __future__ import annotations

from hlofuse.ir.graph import Module
from hlofuse.ir.removing import move_control_dependencies
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder

_REASON = "What the barrier kept in order has been scheduled"


class OptimizationBarrierExpander(Pass):
    """`cse_barrier_expander`: the operand takes the place of each barrier."""

    name = "cse_barrier_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for barrier in [i for i in computation if i.opcode == "opt-barrier"]:
                operand = barrier.operands[0]
                move_control_dependencies(barrier, operand)
                barrier.replace_all_uses_with(operand)
                barrier.drop_all_control_dependencies()
                computation.remove_instruction(barrier)
                recorder.rewrite(computation.name, [barrier.name], [operand.name], rule="", reason=_REASON)
                changed = True
        return changed
