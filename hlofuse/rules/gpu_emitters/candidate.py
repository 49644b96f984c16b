"""The question: one kernel, and what the cost model's analysis of it says."""

from dataclasses import dataclass

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.summary import Summary
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.gpu_fusible import may_be_fused

_WRAPPED = frozenset({"convolution", "dot", "map", "stochastic-convert"})
"""Besides what may be fused (`xla/backends/gpu/transforms/fusion_wrapper.cc`)."""
_LAUNCHED = frozenset({"EM040", "EM041", "EM042", "EM044", "EM045", "EM046", "EM049"})
_TILED = frozenset({"EM031", "EM032"})


@dataclass(frozen=True, slots=True)
class GpuKernel:
    """An instruction that is launched as work of its own."""

    instruction: Instruction
    model: KernelModel

    @property
    def target(self) -> str:
        """The target of a custom call; empty for anything else."""
        return custom_call_target(self.instruction)

    @property
    def is_generated(self) -> bool:
        """XLA writes its code: a fusion, or an instruction that FusionWrapper makes one of."""
        opcode = self.instruction.opcode
        if opcode == "fusion" or opcode in _WRAPPED:
            return True
        return may_be_fused(self.instruction, self.model.release)

    @property
    def config_kind(self) -> str:
        """The kind that the backend config of a fusion names."""
        config = self.summary.config if self.instruction.opcode == "fusion" else None
        return config.kind if config is not None else ""

    @property
    def summary(self) -> Summary:
        return self.model.summary(self.instruction)

    @property
    def launch(self) -> Launch:
        return self.model.launch(self.instruction)

    def derived_launch(self, rule: Rule) -> tuple[int, int] | None:
        """Blocks and threads, where the rule's emitter takes them from the kernel itself."""
        launch = self.launch if rule.code in _LAUNCHED or rule.code in _TILED else None
        if launch is None or (
            rule.code in _TILED and not (self.summary.config and self.summary.config.tile_sizes)
        ):
            return None
        return launch.blocks, launch.threads

    @property
    def modern(self) -> bool:
        """The release has MLIR emitters."""
        return self.model.release.mlir_emitters
