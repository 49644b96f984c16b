"""Rules about one of the two alone: what PriorityFusion never fuses."""

from typing import Any

from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused
from hlofuse.rules.priority_fusion.candidate import PriorityPair
from hlofuse.rules.verdict import condition, requirement


@requirement(
    "PF001",
    "The producer is the result of its computation",
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if pair.producer.is_root else None


@requirement("PF002", "The producer has no code that could be inlined", message="the producer is not fusible")
def producer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.producer, pair.state.model.release) else {"opcode": pair.producer.opcode}


@requirement("PF003", "The consumer takes nothing in", message="the consumer is not fusible")
def consumer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.consumer, pair.state.model.release) else {"opcode": pair.consumer.opcode}


@condition("PF004", "The consumer is a bitcast", message="not fusing into a single bitcast as consumer")
def consumer_is_bitcast(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_fusible_bitcast(pair.consumer, pair.state.model.release) else None
