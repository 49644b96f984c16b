"""Barriers that have done their work (`xla/hlo/transforms/expanders/optimization_barrier_expander.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Module
from hlofuse.ir.removing import move_control_dependencies
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class OptimizationBarrierExpander(Pass):
    """`cse_barrier_expander`: every barrier gives way to its operand."""

    name: ClassVar[str] = "cse_barrier_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        barriers = [x for c in module.non_fusion_computations() for x in c if x.opcode == "opt-barrier"]
        for barrier in barriers:
            operand, computation = barrier.operands[0], barrier.computation
            assert computation is not None
            move_control_dependencies(barrier, operand)
            barrier.replace_all_uses_with(operand)
            barrier.drop_all_control_dependencies()
            computation.remove_instruction(barrier)
        return bool(barriers)
