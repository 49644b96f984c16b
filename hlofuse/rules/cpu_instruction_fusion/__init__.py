"""Rules of CpuInstructionFusion (`xla/service/cpu/cpu_instruction_fusion.cc`): codes CPU…

`RULES` is the order in which `CpuInstructionFusion::ShouldFuse` asks.
"""

from hlofuse.rules.cpu_instruction_fusion.consumer import (
    consumer_is_loop_fusible,
    consumer_is_loop_fusion,
    not_found_a_fusible_case,
    small_vector_dot,
)
from hlofuse.rules.cpu_instruction_fusion.producer import (
    SOFTMAX_SHIFT,
    constant_alone,
    goes_into_its_dot,
    large_constant,
    non_scalar_constant,
    output_fusion,
    producer_is_a_fusion,
    producer_not_loop_fusible,
    skipped_consumer,
)
from hlofuse.rules.cpu_instruction_fusion.size import (
    code_duplication,
    inefficient_concatenate,
    reduction_over_major,
    reused_expensive_producer,
    too_many_reductions,
)
from hlofuse.rules.instruction_fusion.duplication import (
    expensive_would_be_duplicated,
    pass_cannot_duplicate,
    producer_is_root,
)
from hlofuse.rules.instruction_fusion.in_place import may_fuse_into_in_place

RULES = (
    skipped_consumer,
    large_constant,
    non_scalar_constant,
    output_fusion,
    goes_into_its_dot,
    producer_not_loop_fusible,
    inefficient_concatenate,
    reused_expensive_producer,
    producer_is_root,
    expensive_would_be_duplicated,
    pass_cannot_duplicate,
    may_fuse_into_in_place,
    too_many_reductions,
    constant_alone,
    producer_is_a_fusion,
    code_duplication,
    small_vector_dot,
    reduction_over_major,
    consumer_is_loop_fusion,
    consumer_is_loop_fusible,
    not_found_a_fusible_case,
)

__all__ = ["RULES", "SOFTMAX_SHIFT"]
