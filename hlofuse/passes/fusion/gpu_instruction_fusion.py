"""XLA:GPU's instruction fusion before PriorityFusion (`xla/service/gpu/transforms/instruction_fusion.cc`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hlofuse.analysis.elementwise import is_expensive
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import MergingModel
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.fusing import append_producer
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.fusion.instruction_fusion import FusionDriver, InstructionFusion
from hlofuse.rules.evaluate import pair_verdict
from hlofuse.rules.gpu_fusible import choose_kind, fusible_computations
from hlofuse.rules.gpu_instruction_fusion import RULES, GpuFusionState, GpuPair
from hlofuse.rules.instruction_fusion.driver import NOTHING_AGAINST
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder

_CHEAP_IN_HARDWARE = frozenset({"divide", "sqrt", "rsqrt", "exponential"})


class _Driver(FusionDriver):
    def __init__(self, options: InstructionFusion, module: Module, recorder: Recorder) -> None:
        super().__init__(options, module, recorder)
        assert isinstance(options, GpuInstructionFusion)
        if options.device is None:
            raise HlofuseError("fusion asks for a device")
        self.model = MergingModel(options.device, options.release)
        self.state: GpuFusionState = GpuFusionState(
            options.may_duplicate, self.release, options.settings, self.is_expensive, model=self.model
        )

    def computations(self) -> list[Computation]:
        return fusible_computations(self.module, self.release)

    def is_expensive(self, instruction: Instruction) -> bool:
        """Some operations are fast on a GPU (`GpuInstructionFusion::IsExpensive`)."""
        if instruction.opcode in _CHEAP_IN_HARDWARE and instruction.shape.element_type in ("f16", "f32"):
            return False
        return is_expensive(instruction)

    def should_fuse(self, consumer: Instruction, operand_index: int) -> Verdict:
        pair = GpuPair(consumer.operands[operand_index], consumer, operand_index, self.state)
        verdict = pair_verdict(RULES, pair, self.state.settings, pair.producer, consumer)
        return verdict or Verdict(NOTHING_AGAINST)

    def choose_kind(self, producer: Instruction, consumer: Instruction) -> str:
        return choose_kind(producer, consumer, self.model)

    def fuse_instruction(self, fusion: Instruction, producer: Instruction) -> None:
        evaluation = self.state.evaluation(fusion)
        users = evaluation.take_out(producer)
        evaluation.put_in(append_producer(fusion, producer), users)
        self.model.changed(fusion)


@dataclass(frozen=True, kw_only=True)
class GpuInstructionFusion(InstructionFusion):
    """`fusion` on GPU, run twice: first without computing anything twice, then with."""

    driver: ClassVar[type[FusionDriver]] = _Driver
    device: DeviceDescription | None = field(default=None, compare=False, repr=False)
