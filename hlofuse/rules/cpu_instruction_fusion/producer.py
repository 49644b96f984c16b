"""Rules about what the producer is, and about consumers that are left alone."""

from typing import Any

from hlofuse.analysis.cpu_predicates import has_output_fusible_operand, is_loop_fusible, is_output_fusible
from hlofuse.releases import Span
from hlofuse.rules.catalogue import Knob, register
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.verdict import condition, requirement


@requirement(
    "CPU001",
    "The consumer belongs to a library fusion or to a computation that is emitted as a whole",
    message="Don't fuse instructions from custom fusions/calls",
    span=Span(since="0.5"),
)
def skipped_consumer(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.consumer in pair.state.skipped else None


@condition(
    "CPU002",
    "A constant array stays in memory",
    lasting=True,
    message="Don't fuse non-scalar constants.",
    span=Span(since="0.7"),
)
def non_scalar_constant(pair: CandidatePair) -> dict[str, Any] | None:
    producer = pair.producer
    if producer.opcode != "constant" or producer.shape.is_effective_scalar:
        return None
    return {"elements": producer.shape.element_count, "bytes": producer.shape.byte_size}


MAX_CONSTANT_BYTES = Knob(
    "cpu-max-fused-constant", 10_000, "bytes", "A larger constant is not fused by XLA 0.5 and 0.6."
)


@condition(
    "CPU018",
    "A large constant stays in memory",
    lasting=True,
    message="Don't fuse large constants.",
    knobs=(MAX_CONSTANT_BYTES,),
    span=Span("0.5", "0.6"),
)
def large_constant(pair: CandidatePair) -> dict[str, Any] | None:
    producer = pair.producer
    limit = pair.state.settings.value(MAX_CONSTANT_BYTES)
    if producer.opcode != "constant" or producer.shape.byte_size <= limit:
        return None
    return {"bytes": producer.shape.byte_size, "limit_bytes": int(limit)}


@requirement("CPU005", "The producer has no loop form", lasting=True, message="Producer is not loop-fusible.")
def producer_not_loop_fusible(pair: CandidatePair) -> dict[str, Any] | None:
    return None if is_loop_fusible(pair.producer) else {"opcode": pair.producer.opcode}


@condition(
    "CPU010", "A constant alone makes no fusion", message="Not fusing: insufficient non-constant nodes."
)
def constant_alone(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.producer.opcode == "constant" and pair.consumer.opcode != "fusion" else None


@condition(
    "CPU011",
    "The producer is a fusion already",
    lasting=True,
    message="Not fusing: producer is itself a fusion node.",
)
def producer_is_a_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.producer.opcode == "fusion" else None


# Rules that let an add be done while a matrix-vector product writes its results.


@condition("CPU003", "The add goes into its matrix-vector product", allows=True)
def output_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if is_output_fusible(pair.producer, pair.consumer) else None


@condition(
    "CPU004",
    "The add waits for its own matrix-vector product",
    message="Bailing because producer can be output-fused into some operand.",
)
def goes_into_its_dot(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if has_output_fusible_operand(pair.producer) else None


# The producer of a softmax, which XLA:CPU computes exactly once.

SOFTMAX_SHIFT = register(
    "CPU017",
    "The input of a softmax is computed once",
    lasting=True,
    message="operand can not be duplicated",
    span=Span(since="0.11"),
)
