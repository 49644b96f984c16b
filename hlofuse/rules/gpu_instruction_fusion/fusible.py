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

_FILE = "xla/service/gpu/gpu_fusible.cc"
_MIRRORS = f"{_FILE}: IsProducerConsumerFusible"
_SCATTER = f"{_FILE}: CanEmitInputFusedScatter"
_PRIORITY = "Used by the passes until 0.4.35; PriorityFusion checks "


@requirement(
    code="GI010",
    title="The producer cannot be emitted per element",
    condition="The producer is neither an operation (or fusion) that a loop can inline nor a tiled"
    " transpose.",
    why="Library calls, sorts, collectives and reductions with several results have their own code.",
    mirrors=_MIRRORS + ", IsLoopFusibleAsProducer",
    message="the producer is not loop-fusible",
    history=_PRIORITY + "its own list of operations first.",
)
def producer_not_loop_fusible(pair: GpuPair) -> dict[str, Any] | None:
    model = pair.state.model
    if is_loop_fusible_producer(pair.producer, model.release) or has_tiled_transpose(pair.producer, model):
        return None
    return {"opcode": pair.producer.opcode}


@requirement(
    code="GI011",
    title="The reduction uses several blocks for one result",
    condition="The producer is a parallel reduction over a row of more than 16384 elements or a column of"
    " more than 4096. Atomic operations add up its parts.",
    why="Nothing can follow inside the kernel, because no thread knows when the sum is complete.",
    advice="Reduce in two steps: reshape long rows into several shorter ones first.",
    mirrors=_MIRRORS + "; xla/service/gpu/reduction_utils.cc: ReductionIsRaceFree",
    message="Reduction output fusion only works for race free reductions",
)
def reduction_not_race_free(pair: GpuPair) -> dict[str, Any] | None:
    hero = _reduction_hero(pair)
    if hero is None or hero.race_free:
        return None
    return {"sizes": list(hero.reduction.sizes) if hero.reduction is not None else []}


@condition(
    code="GI012",
    title="More than a chain of elementwise operations follows the reduction",
    condition="The producer is a parallel reduction, and the consumer contains more than single-operand"
    " elementwise operations and bitcasts.",
    why="The reduction emitter applies only such a chain to each result before writing it.",
    mirrors=_MIRRORS,
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
    code="GI013",
    title="The reduction has several users",
    condition="The producer is a parallel reduction with more than one user.",
    why="Fused into each user, the reduction would be computed once per user.",
    advice="Give the reduction a single user; or keep it, its result is small.",
    mirrors=_MIRRORS,
    message="reduction output fusion only works for single user",
)
def reduction_has_users(pair: GpuPair) -> dict[str, Any] | None:
    if _reduction_hero(pair) is None or len(pair.producer.users) <= 1:
        return None
    return {"users": len(pair.producer.users)}


@requirement(
    code="GI014",
    title="Nothing follows a scatter in its kernel",
    condition="The producer is a scatter, or a kernel that ends in one.",
    why="A scatter's threads run over the updates; an element is complete only after all of them.",
    mirrors=_SCATTER,
    message="do not fuse into the output of scatter",
)
def producer_is_scatter(pair: GpuPair) -> dict[str, Any] | None:
    return {} if is_scatter_fusion(pair.producer) else None


@requirement(
    code="GI015",
    title="The producer computes the array that a scatter updates",
    condition="The producer is the first operand of a scatter.",
    why="A scatter writes into that array, so the array must be in memory.",
    mirrors=_SCATTER,
    message="do not fuse into the in-place operand of scatter",
)
def producer_is_scattered_into(pair: GpuPair) -> dict[str, Any] | None:
    return {} if _scattered_into(pair.consumer) is pair.producer else None


@requirement(
    code="GI016",
    title="The producer reads the array that a scatter updates",
    condition="The producer of a scatter's updates or indices reads the array that the scatter overwrites.",
    why="It could read elements that are already updated.",
    mirrors=_SCATTER,
    message="Producer uses the in-place operand of a scatter",
)
def producer_reads_scattered_into(pair: GpuPair) -> dict[str, Any] | None:
    array = _scattered_into(pair.consumer)
    return {} if array is not None and array in pair.producer.operands else None


@requirement(
    code="GI017",
    title="The consumer cannot be fused into",
    condition="The consumer is neither a loop nor a kernel that iterates over its input (reduction, tiled"
    " transpose, scatter).",
    why="Library calls, sorts, collectives and the result tuple read complete arrays.",
    advice="The tuple at the end of a function is not a kernel: the producer is written because it is"
    " returned.",
    mirrors=_MIRRORS + ", IsLoopFusibleAsConsumer, IsInputFusible",
    message="the consumer is not input-fusible and not loop-fusible",
)
def consumer_takes_nothing(pair: GpuPair) -> dict[str, Any] | None:
    model = pair.state.model
    if is_input_fusible(pair.consumer, model) or is_loop_fusible_consumer(pair.consumer, model):
        return None
    return {"opcode": pair.consumer.opcode}


@requirement(
    code="GI018",
    title="The producer has several results",
    condition="The producer is a multi-output fusion.",
    why="Its other results would be lost, or computed twice.",
    mirrors=_MIRRORS,
    message="the producer is not fusible as it is a multi-output fusion",
)
def producer_has_several_results(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.producer.is_multi_output_fusion else None


@condition(
    code="GI019",
    title="A constant does not start a kernel",
    condition="The producer is a constant of more than one element, or the consumer is not a fusion yet.",
    why="A large constant is an array in memory like any other. A scalar is fused into an existing fusion but"
    " does not start one.",
    mirrors=_MIRRORS,
    message="not fusing constant",
)
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
