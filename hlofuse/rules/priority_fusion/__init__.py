"""Rules of PriorityFusion (`xla/backends/gpu/transforms/priority_fusion.cc`): codes PF….
`PriorityFusionQueue::CanFuse` asks `OF_PRODUCER` and `OF_CONSUMER` first, which look at one of the two only,
then `RULES`, or `TRITON_RULES` where one of the pair is a Triton fusion."""

from collections.abc import Callable
from typing import TypeAlias

from hlofuse.rules.instruction_fusion import CandidatePair, may_fuse_into_in_place
from hlofuse.rules.priority_fusion import conditions
from hlofuse.rules.verdict import Decision
from .conditions import PriorityPair, PriorityState


def in_place_conflict(pair: PriorityPair) -> Decision:
    """`InstructionFusion::ShouldFuseInPlaceOp`."""
    return may_fuse_into_in_place(CandidatePair(pair.producer, pair.consumer, 0, pair.state.in_place))


PairRule: TypeAlias = Callable[[PriorityPair], Decision]
OF_PRODUCER: tuple[PairRule, ...] = (conditions.producer_is_root, conditions.producer_not_fusible)
OF_CONSUMER: tuple[PairRule, ...] = (conditions.consumer_not_fusible,)
TRITON_RULES = (
    conditions.producer_unsupported_by_triton,
    conditions.consumer_unsupported_by_triton,
    conditions.triton_over_limit,
    conditions.not_tiled,
)
SCATTER_RULES: tuple[PairRule, ...] = (
    conditions.producer_is_scatter,
    conditions.producer_is_scattered_into,
    conditions.producer_reads_updated,
)
STRUCTURE_RULES: tuple[PairRule, ...] = (
    conditions.consumer_is_bitcast,
    *SCATTER_RULES,
    conditions.both_reduce,
    conditions.reduction_becomes_loop,
    conditions.kernel_over_budget,
    conditions.code_duplication,
)  # Their answer is the same for all pairs of the same structure
IN_PLACE_RULES: tuple[PairRule, ...] = (in_place_conflict,)
"""They look at operands of the update in place, which a structure does not tell apart."""
RULES = (*STRUCTURE_RULES, *IN_PLACE_RULES)
