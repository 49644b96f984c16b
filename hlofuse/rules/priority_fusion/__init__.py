"""Rules of PriorityFusion (`xla/backends/gpu/transforms/priority_fusion.cc`): codes PF….

`PriorityFusionQueue::CanFuse` asks `OF_PRODUCER` and `OF_CONSUMER` first, which look at one of the two
only, then `RULES`, or `TRITON_RULES` where one of the pair is a Triton fusion.
"""

from collections.abc import Callable
from typing import TypeAlias

from hlofuse.cost.gpu.atoms import SCATTERS
from hlofuse.cost.gpu.summary import SummaryPair as Structure
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Release
from hlofuse.rules.gpu_fusible import may_be_fused
from hlofuse.rules.instruction_fusion import CandidatePair, may_fuse_into_in_place
from hlofuse.rules.priority_fusion import conditions
from hlofuse.rules.priority_fusion.conditions import Limits, PriorityPair, PriorityState
from hlofuse.rules.verdict import Verdict


def in_place_conflict(pair: PriorityPair) -> Verdict | None:
    """`InstructionFusion::ShouldFuseInPlaceOp`."""
    return may_fuse_into_in_place(CandidatePair(pair.producer, pair.consumer, 0, pair.state.in_place))


PairRule: TypeAlias = Callable[[PriorityPair], Verdict | None]

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
_REDUCE_RULES: tuple[PairRule, ...] = (conditions.both_reduce, conditions.reduction_becomes_loop)
_BUDGET_RULES: tuple[PairRule, ...] = (conditions.kernel_over_budget, conditions.code_duplication)
STRUCTURE_RULES: tuple[PairRule, ...] = (
    conditions.consumer_is_bitcast,
    *SCATTER_RULES,
    *_REDUCE_RULES,
    *_BUDGET_RULES,
)
"""Their answer is the same for all pairs of the same structure."""


def rules_of_one(
    instruction: Instruction, release: Release
) -> tuple[tuple[PairRule, ...], tuple[PairRule, ...]]:
    """The rules of `OF_PRODUCER` and `OF_CONSUMER` that can refuse it."""
    if may_be_fused(instruction, release):
        return OF_PRODUCER if instruction.is_root else (), ()
    return OF_PRODUCER, OF_CONSUMER


def structure_rules(
    producer: Instruction, consumer: Instruction, pair: Structure, limits: Limits
) -> tuple[PairRule, ...]:
    """The rules of `STRUCTURE_RULES` that can refuse the pair; for most pairs few apply."""
    first, second = pair.producer, pair.consumer
    has_room = (
        len(producer.operands) + len(consumer.operands) + 1 <= limits.parameters
        and first.ir_size * second.parameter_ir_size[pair.slot] + second.ir_size <= limits.ir_size
        and not (first.splits or second.splits)
    )
    rules: tuple[PairRule, ...] = (conditions.consumer_is_bitcast,) if consumer.opcode == "bitcast" else ()
    if first.is_plain and second.is_plain:
        return rules if has_room and limits.admit_plain else rules + _BUDGET_RULES
    if (first.features | second.features) & SCATTERS:
        rules += SCATTER_RULES
    if first.is_reduction or first.significant_reduce:
        rules += _REDUCE_RULES
    return rules if has_room and limits.admit(first, second) else rules + _BUDGET_RULES


IN_PLACE_RULES: tuple[PairRule, ...] = (in_place_conflict,)
"""They look at operands of the update in place, which a structure does not tell apart."""
RULES = (*STRUCTURE_RULES, *IN_PLACE_RULES)

__all__ = ["Limits", "PriorityPair", "PriorityState"]
