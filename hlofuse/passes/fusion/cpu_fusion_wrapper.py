"""Wraps single operations into fusions (`xla/service/cpu/fusion_wrapper.cc`, `FusionWrapperBase`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.fusing import create_fusion
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import move_control_dependencies
from hlofuse.passes.base import Pass
from hlofuse.rules.evaluate import first_verdict
from hlofuse.rules.fusion_wrapper import RULES
from hlofuse.trace import Recorder

_ENTERED = frozenset({"conditional", "while", "call", "async-start"})


@dataclass(frozen=True, kw_only=True)
class CpuFusionWrapper(Pass):
    """Goes through the entry computation and the control flow it calls, callees at the point of the call."""

    name: ClassVar[str] = "fusion-wrapper"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for instruction in _reached(module.entry):
            verdict = first_verdict(RULES, instruction, self.settings)
            if verdict is None:
                continue
            if not verdict.allows:
                recorder.ineligible(
                    instruction, None, rule=verdict.rule.code, reason=verdict.reason, figures=verdict.figures
                )
                continue
            name = instruction.name
            parent = instruction.computation
            assert parent is not None
            fusion = _wrap(module, instruction)
            recorder.rewrite(
                parent.name, [name], [fusion.name], rule=verdict.rule.code, reason=verdict.reason
            )
            changed = True
        return changed


def _reached(entry: Computation) -> Iterator[Instruction]:
    """Instructions in post-order, those of called control flow in place of the caller."""
    stack = [iter(entry.post_order())]
    while stack:
        for instruction in stack[-1]:
            if instruction.computation is None:
                continue  # wrapped already: its computation is called from several places
            if instruction.opcode in _ENTERED:
                stack += [iter(c.post_order()) for c in reversed(instruction.called_computations)]
                break
            yield instruction
        else:
            stack.pop()


def _wrap(module: Module, instruction: Instruction) -> Instruction:
    computation = instruction.computation
    assert computation is not None
    fusion = create_fusion(instruction, "kLoop")
    fusion.name = module.instruction_names.unique(f"wrapped_{instruction.opcode}")
    body = fusion.fused_computation
    body.name = module.computation_names.unique(f"wrapped_{instruction.opcode}_computation")
    move_control_dependencies(instruction, fusion)
    instruction.replace_all_uses_with(fusion)
    computation.remove_instruction(instruction)
    return fusion
