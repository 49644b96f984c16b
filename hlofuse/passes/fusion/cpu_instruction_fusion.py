"""XLA:CPU's instruction fusion (`xla/service/cpu/cpu_instruction_fusion.cc`)."""

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.cpu_predicates import (
    is_expensive_on_cpu,
    is_output_fusible,
    is_softmax_shift,
    is_supported_elemental_op,
)
from hlofuse.ir.fusing import append_producer
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.passes.fusion.instruction_fusion import FusionDriver, InstructionFusion
from hlofuse.rules.cpu_instruction_fusion import RULES, SOFTMAX_SHIFT
from hlofuse.rules.verdict import Verdict


class _Driver(FusionDriver):
    rules = RULES

    def prepare(self) -> None:
        """Find the consumers to leave alone (`ComputeInstructionsToSkip`)."""
        skipped = self.state.skipped
        for computation in self.module.computations:
            for instruction in computation:
                if instruction.fusion_kind == "kCustom":
                    skipped.add(instruction)
                elif instruction.opcode == "custom-call":
                    skipped.update(x for callee in instruction.called_computations[:1] for x in callee)
                elif instruction.called and self._is_emitted_whole(instruction.opcode):
                    skipped.update(x for callee in instruction.called_computations for x in callee)

    def _is_emitted_whole(self, opcode: str) -> bool:
        """True if what such an operation calls is generated as a part of it (`BlockSubcomputationFusion`)."""
        if opcode == "scatter":
            return True
        return self.release.cpu_inlined_computations_stay and is_supported_elemental_op(opcode)

    def is_expensive(self, instruction: Instruction) -> bool:
        return is_expensive_on_cpu(instruction, self.release)

    def choose_kind(self, producer: Instruction, consumer: Instruction) -> str:
        return "kOutput" if is_output_fusible(producer, consumer) else "kLoop"

    def unfusible(self, computation: Computation) -> dict[Instruction, Verdict]:
        found = super().unfusible(computation)
        in_force = self.release.has(SOFTMAX_SHIFT.span, SOFTMAX_SHIFT.code)
        if in_force and SOFTMAX_SHIFT.code not in self.state.settings.disabled:
            for instruction in computation.post_order():
                if instruction not in found and is_softmax_shift(instruction):
                    found[instruction] = Verdict(SOFTMAX_SHIFT)
        return found

    def fuse_instruction(self, fusion: Instruction, producer: Instruction) -> None:
        if not self.state.may_duplicate:
            super().fuse_instruction(fusion, producer)
            return
        # Producers are never fusions here, so there is one clone to account for.
        evaluation = self.state.evaluation(fusion)
        users = evaluation.take_out(producer)
        evaluation.put_in(append_producer(fusion, producer), users)


@dataclass(frozen=True, kw_only=True)
class CpuInstructionFusion(InstructionFusion):
    """`fusion` on CPU; `may_duplicate` is off when multi-output fusion follows."""

    driver: ClassVar[type[FusionDriver]] = _Driver
