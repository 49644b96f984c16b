"""Pairs that can be one kernel at all (`IsProducerConsumerFusible`)."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_fusible import (
    has_tiled_transpose,
    is_input_fusible,
    is_loop_fusible_consumer,
    is_loop_fusible_producer,
    is_scatter_fusion,
)
from hlofuse.rules.gpu_instruction_fusion.candidate import GpuPair
from hlofuse.rules.instruction_fusion.in_place import may_fuse_into_in_place
from hlofuse.rules.verdict import condition, requirement


@requirement(
    "GI010", "The producer has no code for a single element", message="the producer is not loop-fusible"
)
def producer_not_loop_fusible(pair: GpuPair) -> dict[str, Any] | None:
    model = pair.state.model
    if is_loop_fusible_producer(pair.producer, model.release) or has_tiled_transpose(pair.producer, model):
        return None
    return {"opcode": pair.producer.opcode}


@requirement(
    "GI011",
    "The reduction takes several blocks for one result",
    message="Reduction output fusion only works for race free reductions",
)
def reduction_not_race_free(pair: GpuPair) -> dict[str, Any] | None:
    hero = _reduction_hero(pair)
    if hero is None or hero.race_free:
        return None
    return {"sizes": list(hero.reduction.sizes) if hero.reduction is not None else []}


@condition(
    "GI012",
    "What follows the reduction is more than a chain of element-wise operations",
    message="Reductions from/to continuous dims epilogue not fusible",
)
def epilogue_not_a_chain(pair: GpuPair) -> dict[str, Any] | None:
    if _reduction_hero(pair) is None:
        return None
    consumer, atom = pair.consumer, pair.state.model.atoms.atom
    body = list(consumer.fused_computation) if consumer.opcode == "fusion" else [consumer]
    for inner in body:
        if inner.opcode != "parameter" and not atom(inner).intermediate_chain:
            return {"operation": inner.name}
    return None


@condition(
    "GI013", "The reduction has several users", message="reduction output fusion only works for single user"
)
def reduction_has_users(pair: GpuPair) -> dict[str, Any] | None:
    if _reduction_hero(pair) is None or len(pair.producer.users) <= 1:
        return None
    return {"users": len(pair.producer.users)}


@requirement(
    "GI014", "Nothing follows a scatter in its kernel", message="do not fuse into the output of scatter"
)
def producer_is_scatter(pair: GpuPair) -> dict[str, Any] | None:
    return {} if is_scatter_fusion(pair.producer) else None


@requirement(
    "GI015",
    "The producer makes the array that a scatter updates",
    message="do not fuse into the in-place operand of scatter",
)
def producer_is_scattered_into(pair: GpuPair) -> dict[str, Any] | None:
    return {} if _scattered_into(pair.consumer) is pair.producer else None


@requirement(
    "GI016",
    "The producer reads the array that a scatter updates",
    message="Producer uses the in-place operand of a scatter",
)
def producer_reads_scattered_into(pair: GpuPair) -> dict[str, Any] | None:
    array = _scattered_into(pair.consumer)
    return {} if array is not None and array in pair.producer.operands else None


@requirement(
    "GI017", "The consumer takes nothing in", message="the consumer is not input-fusible and not loop-fusible"
)
def consumer_takes_nothing(pair: GpuPair) -> dict[str, Any] | None:
    model = pair.state.model
    if is_input_fusible(pair.consumer, model) or is_loop_fusible_consumer(pair.consumer, model):
        return None
    return {"opcode": pair.consumer.opcode}


@requirement(
    "GI018",
    "The producer has several results",
    message="the producer is not fusible as it is a multi-output fusion",
)
def producer_has_several_results(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.producer.is_multi_output_fusion else None


@condition("GI019", "A constant is not a kernel's beginning", message="not fusing constant")
def constant_stays(pair: GpuPair) -> dict[str, Any] | None:
    producer = pair.producer
    if producer.opcode != "constant":
        return None
    if producer.shape.is_effective_scalar and pair.consumer.opcode == "fusion":
        return None
    return {"elements": producer.shape.element_count}


FUSIBLE_RULES = (
    producer_not_loop_fusible,
    reduction_not_race_free,
    epilogue_not_a_chain,
    reduction_has_users,
    producer_is_scatter,
    producer_is_scattered_into,
    producer_reads_scattered_into,
    consumer_takes_nothing,
    producer_has_several_results,
    constant_stays,
    may_fuse_into_in_place,
)
"""`IsProducerConsumerFusible`, in its order."""


def _reduction_hero(pair: GpuPair) -> Any:
    """What the kernel of a producer that is a parallel reduction is about; None for other producers."""
    summary = pair.state.model.summary(pair.producer)
    return summary.roots[0].hero[0] if summary.is_reduction else None


def _scattered_into(consumer: Instruction) -> Instruction | None:
    """The operand that a scatter, or a kernel that ends in one, writes over."""
    if not is_scatter_fusion(consumer):
        return None
    if consumer.opcode != "fusion":
        return consumer.operands[0]
    inner = consumer.fused_root.operands[0]
    return consumer.operands[inner.parameter_number] if inner.opcode == "parameter" else None
