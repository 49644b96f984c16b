"""The candidates of GPU instruction fusion and FusionMerger: a producer fused into a consumer."""

from dataclasses import dataclass

from hlofuse.cost.gpu.merging import MergingModel
from hlofuse.rules.instruction_fusion.candidate import CandidatePair, FusionState


@dataclass(slots=True, kw_only=True)
class GpuFusionState(FusionState):
    """What a run of the pass knows besides the graph."""

    model: MergingModel


@dataclass(frozen=True, slots=True)
class GpuPair(CandidatePair):
    """The question: `producer` is operand `operand_index` of `consumer`."""

    state: GpuFusionState
