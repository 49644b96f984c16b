"""Rules of PriorityFusion (`xla/backends/gpu/transforms/priority_fusion.cc`): codes PF….

`RULES` and `TRITON_RULES` are the orders in which `PriorityFusionQueue::CanFuse` asks about a pair;
which of the two continues after `FIRST` depends on whether one of the pair is a Triton fusion.
"""

from __future__ import annotations

from hlofuse.rules.instruction_fusion.in_place import may_fuse_into_in_place
from hlofuse.rules.instruction_fusion.question import Pair
from hlofuse.rules.priority_fusion.budget import code_duplication, kernel_over_budget, parameters_over_limit
from hlofuse.rules.priority_fusion.eligible import (
    consumer_is_bitcast,
    consumer_not_fusible,
    producer_is_root,
    producer_not_fusible,
)
from hlofuse.rules.priority_fusion.question import PriorityPair, PriorityState
from hlofuse.rules.priority_fusion.reduction import both_reduce, reduction_becomes_loop
from hlofuse.rules.priority_fusion.scatter import (
    producer_is_scatter,
    producer_is_scattered_into,
    producer_reads_updated,
)
from hlofuse.rules.priority_fusion.triton import (
    consumer_unsupported_by_triton,
    not_tiled,
    producer_unsupported_by_triton,
)
from hlofuse.rules.verdict import Verdict


def in_place_conflict(pair: PriorityPair) -> Verdict | None:
    """`InstructionFusion::ShouldFuseInPlaceOp`."""
    return may_fuse_into_in_place(Pair(pair.producer, pair.consumer, 0, pair.state.in_place))


FIRST = (producer_is_root, producer_not_fusible, consumer_not_fusible)
TRITON_RULES = (
    producer_unsupported_by_triton,
    consumer_unsupported_by_triton,
    parameters_over_limit,
    not_tiled,
)
RULES = (
    consumer_is_bitcast,
    producer_is_scatter,
    producer_is_scattered_into,
    producer_reads_updated,
    both_reduce,
    reduction_becomes_loop,
    kernel_over_budget,
    code_duplication,
    in_place_conflict,
)

__all__ = ["FIRST", "RULES", "TRITON_RULES", "PriorityPair", "PriorityState"]
