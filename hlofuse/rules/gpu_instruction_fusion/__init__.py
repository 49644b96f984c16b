"""Rules of GpuInstructionFusion (`xla/service/gpu/transforms/instruction_fusion.cc`): codes GI….

`RULES` is the order in which `GpuInstructionFusion::ShouldFuse` asks, `FUSIBLE_RULES` that of
`IsProducerConsumerFusible`, which FusionMerger asks as well.
"""

from hlofuse.rules.gpu_instruction_fusion.candidate import GpuFusionState, GpuPair
from hlofuse.rules.gpu_instruction_fusion.fusible import FUSIBLE_RULES
from hlofuse.rules.gpu_instruction_fusion.profit import (
    breaks_coalescing,
    code_duplication,
    consumer_is_custom,
    creates_heavy_computation,
    over_kernel_budget,
    producer_is_a_fusion,
    reused_expensive_producer,
)
from hlofuse.rules.instruction_fusion.duplication import (
    expensive_would_be_duplicated,
    pass_cannot_duplicate,
    producer_is_root,
)
from hlofuse.rules.instruction_fusion.in_place import may_fuse_into_in_place

RULES = (
    producer_is_a_fusion,
    consumer_is_custom,
    reused_expensive_producer,
    breaks_coalescing,
    *FUSIBLE_RULES,
    creates_heavy_computation,
    producer_is_root,
    expensive_would_be_duplicated,
    pass_cannot_duplicate,
    may_fuse_into_in_place,
    over_kernel_budget,
    code_duplication,
)

__all__ = ["FUSIBLE_RULES", "RULES", "GpuFusionState", "GpuPair"]
