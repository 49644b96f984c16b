"""Marks the names that instructions have when fusion begins
(`xla/backends/gpu/transforms/add_tracking_suffix_to_instruction_names.cc`)."""

from __future__ import annotations

from hlofuse.analysis.expensive import is_fusible
from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder

_LEFT = frozenset({"parameter", "custom-call", "fusion"})


class RenameInstructions(Pass):
    """`rename-instructions`: `add.2` becomes `add.2.0` if a fusion may hold it. XLA has it since 0.6.0."""

    name = "rename-instructions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        unique, changed = module.instruction_names.unique, False
        for computation in module.non_fusion_computations():
            for instruction in computation:
                if instruction.opcode not in _LEFT and is_fusible(instruction):
                    instruction.name = unique(f"{instruction.name}.0")
                    changed = True
        return changed
