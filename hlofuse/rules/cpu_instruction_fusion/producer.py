"""Rules about what the producer is, and about consumers that are left alone."""

from typing import Any

from hlofuse.analysis.cpu_predicates import has_output_fusible_operand, is_loop_fusible, is_output_fusible
from hlofuse.releases import Span
from hlofuse.rules.catalogue import Knob, register
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.verdict import condition, requirement

_SHOULD_FUSE = "xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ShouldFuse"


@requirement(
    code="CPU001",
    title="The consumer is a library fusion or belongs to a computation that is emitted as a whole",
    condition="The consumer is a custom fusion (YNNPACK or oneDNN), or is in a computation called by a"
    " custom-call, a scatter, or an operation that the fusion emitters inline (reduce, map, sort…).",
    why="A library call is fixed when it is created. A computation that runs for each element cannot contain"
    " kernels.",
    advice="To replay without the library, set XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type= (empty)."
    " Measure whether XLA's own fusions are faster.",
    mirrors=_SHOULD_FUSE + ", ComputeInstructionsToSkip, BlockSubcomputationFusion",
    message="Don't fuse instructions from custom fusions/calls",
    span=Span(since="0.5"),
    history="The computations of reduce, map, sort… count since 0.7.",
)
def skipped_consumer(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.consumer in pair.state.skipped else None


@condition(
    code="CPU002",
    title="A constant array stays in memory",
    condition="The producer is a constant of more than one element.",
    why="A scalar becomes an immediate operand of the generated code. An array is in memory anyway, and a"
    " kernel reads it like any other input.",
    advice="If the array follows a pattern (a mask, positions, zeros), compute it with jnp.arange, broadcasts"
    " or jnp.where instead of numpy; such values are fused.",
    lasting=True,
    mirrors=_SHOULD_FUSE,
    message="Don't fuse non-scalar constants.",
    span=Span(since="0.7"),
    history="0.5 and 0.6 refuse large constants only (CPU018).",
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
    code="CPU018",
    title="A large constant stays in memory",
    condition="The producer is a constant of more than 10,000 bytes.",
    why="A constant inside a kernel becomes part of its code. A large one makes the code large and slow to"
    " compile, and reading it from memory is as fast.",
    advice="If the array follows a pattern (a mask, positions, zeros), compute it with jnp.arange, broadcasts"
    " or jnp.where instead of numpy; such values are fused.",
    lasting=True,
    mirrors=_SHOULD_FUSE + ", IsLargeConstant",
    message="Don't fuse large constants.",
    knobs=(MAX_CONSTANT_BYTES,),
    span=Span("0.5", "0.6"),
    history="Later releases refuse every constant of more than one element (CPU002).",
)
def large_constant(pair: CandidatePair) -> dict[str, Any] | None:
    producer = pair.producer
    limit = pair.state.settings.value(MAX_CONSTANT_BYTES)
    if producer.opcode != "constant" or producer.shape.byte_size <= limit:
        return None
    return {"bytes": producer.shape.byte_size, "limit_bytes": int(limit)}


@requirement(
    code="CPU005",
    title="The producer cannot be emitted as a loop",
    condition="The producer is neither elementwise nor a bitcast, broadcast, concatenate, dynamic-slice,"
    " dynamic-update-slice, gather, iota, pad, reduce, reshape, reverse, slice or transpose.",
    why="Fusion inlines the code that computes one element of the producer. Matmuls, convolutions, sorts,"
    " scatters, reduce-windows and calls have no such code: they are library calls or kernels of their own.",
    advice="Rewrite a cumulative sum (reduce-window) or sort with other operations if possible, and a scatter"
    " of contiguous data as jax.lax.dynamic_update_slice.",
    lasting=True,
    mirrors=_SHOULD_FUSE + ", CanBeLoopFused",
    message="Producer is not loop-fusible.",
)
def producer_not_loop_fusible(pair: CandidatePair) -> dict[str, Any] | None:
    return None if is_loop_fusible(pair.producer) else {"opcode": pair.producer.opcode}


@condition(
    code="CPU010",
    title="A constant alone does not start a fusion",
    condition="The producer is a constant and the consumer is not a fusion yet.",
    why="A kernel of one operation and its constant saves nothing. Once the consumer is a fusion for another"
    " reason, its scalar constants are fused.",
    mirrors=_SHOULD_FUSE,
    message="Not fusing: insufficient non-constant nodes.",
)
def constant_alone(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.producer.opcode == "constant" and pair.consumer.opcode != "fusion" else None


@condition(
    code="CPU011",
    title="The producer is already a fusion",
    condition="The producer is a fusion.",
    why="XLA:CPU grows a fusion upwards from its result, one operation at a time, and never merges two"
    " fusions. A producer that is already a fusion is the result of another kernel.",
    advice="Look at the producer's own decisions: usually it has several users, or this consumer reuses it.",
    lasting=True,
    mirrors=_SHOULD_FUSE,
    message="Not fusing: producer is itself a fusion node.",
)
def producer_is_a_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.producer.opcode == "fusion" else None


# Rules that let an add be done while a matrix-vector product writes its results.

_SHOULD_FUSE_OUTPUT_FUSION = "xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ShouldFuse"


@condition(
    code="CPU003",
    title="The add is fused into its matrix-vector product",
    condition="The consumer is an add. The producer is a real dot without batch dimensions, its result has"
    " rank 0 or 1, and this add is its only use.",
    why="XLA:CPU emits small matrix-vector products itself and can add the other operand when it stores each"
    " result. This rule comes first and allows the pair as a kOutput fusion.",
    mirrors=_SHOULD_FUSE_OUTPUT_FUSION + ", CanBeOutputFused",
    allows=True,
)
def output_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if is_output_fusible(pair.producer, pair.consumer) else None


@condition(
    code="CPU004",
    title="The add is reserved for its own matrix-vector product",
    condition="The producer is an add that can be an output fusion with one of its operands (CPU003).",
    why="Fused into this consumer, it could not be fused into the dot, which saves more.",
    advice="If the consumer matters more, give the dot a second user.",
    mirrors=_SHOULD_FUSE_OUTPUT_FUSION + ", CanBeOutputFusedIntoSomeOperand",
    message="Bailing because producer can be output-fused into some operand.",
)
def goes_into_its_dot(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if has_output_fusible_operand(pair.producer) else None


# The producer of a softmax, which XLA:CPU computes exactly once.

SOFTMAX_SHIFT = register(
    code="CPU017",
    title="The input of a softmax is computed once",
    condition="The producer is elementwise and feeds both a row maximum and the subtraction of that maximum"
    " before an exp.",
    why="Two copies can differ in the last bit (one with a fused multiply-add). The maximum is then not the"
    " maximum of the shifted values, and exp() can overflow.",
    lasting=True,
    mirrors="xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ComputeGloballyUnfusible, "
    "IsCoupledReductionShiftExpProducer",
    message="operand can not be duplicated",
    span=Span(since="0.11"),
)
