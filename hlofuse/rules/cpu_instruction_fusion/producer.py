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
    title="The consumer belongs to a library fusion or to a computation that is emitted as a whole",
    condition="Is the consumer a custom fusion (a YNNPACK or oneDNN call), inside a computation called "
    "by a custom-call or a scatter, or inside one called by an operation the fusion emitters inline "
    "(reduce, map, sort…)?",
    why="A library call is fixed when it is made, and a computation that runs for each element cannot "
    "contain kernels of its own.",
    advice="To see what XLA would do without the library: "
    "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type= (empty). Whether its own fusions are faster has "
    "to be measured.",
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
    condition="Is the producer a constant of more than one element?",
    why="A scalar becomes an immediate operand of the generated code; an array has to be in memory "
    "anyway, and a kernel reads it like any other input.",
    advice="Where the array follows a rule (a mask, positions, a table of zeros), compute it with "
    "jnp.arange, broadcasts or jnp.where instead of building it with numpy: such values are fused.",
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
    condition="Is the producer a constant of more than 10,000 bytes?",
    why="A constant inside a kernel becomes a part of its code. A large one makes the code large and "
    "slow to compile, while a kernel reads it from memory as fast.",
    advice="Where the array follows a rule (a mask, positions, a table of zeros), compute it with "
    "jnp.arange, broadcasts or jnp.where instead of building it with numpy: such values are fused.",
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
    title="The producer has no loop form",
    condition="Is the producer neither elementwise nor one of bitcast, broadcast, concatenate, "
    "dynamic-slice, dynamic-update-slice, gather, iota, pad, reduce, reshape, reverse, slice, transpose?",
    why="Fusing inlines the code that computes one element of the producer. Matrix products, "
    "convolutions, sorts, scatters, reduce-windows and calls have no such form: they run as library "
    "calls or kernels of their own.",
    advice="A cumulative sum (reduce-window) or a sort can sometimes be written with other operations; a "
    "scatter of contiguous data as jax.lax.dynamic_update_slice.",
    lasting=True,
    mirrors=_SHOULD_FUSE + ", CanBeLoopFused",
    message="Producer is not loop-fusible.",
)
def producer_not_loop_fusible(pair: CandidatePair) -> dict[str, Any] | None:
    return None if is_loop_fusible(pair.producer) else {"opcode": pair.producer.opcode}


@condition(
    code="CPU010",
    title="A constant alone makes no fusion",
    condition="Is the producer a constant and the consumer not yet a fusion?",
    why="A kernel of one operation and its constant gains nothing; once the consumer is a fusion for "
    "another reason, its scalar constants go in.",
    mirrors=_SHOULD_FUSE,
    message="Not fusing: insufficient non-constant nodes.",
)
def constant_alone(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.producer.opcode == "constant" and pair.consumer.opcode != "fusion" else None


@condition(
    code="CPU011",
    title="The producer is a fusion already",
    condition="Is the producer a fusion?",
    why="XLA:CPU grows a fusion upwards from its result, one operation at a time, and never merges "
    "two: when an operation turns up as a fusion it has become the result of another kernel.",
    advice="Two kernels meet here. The producer's own decisions tell why it was not taken in while it "
    "was a plain operation: usually it has several users, or it is reused by this consumer.",
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
    title="The add goes into its matrix-vector product",
    condition="Is the consumer an add, and the producer a real dot without batch dimensions whose result "
    "has rank 0 or 1 and is used only here, once?",
    why="XLA:CPU emits small matrix-vector products itself and can add the other operand as it stores "
    "each result. The pair is allowed before any other question is asked, as a kOutput fusion.",
    mirrors=_SHOULD_FUSE_OUTPUT_FUSION + ", CanBeOutputFused",
    allows=True,
)
def output_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if is_output_fusible(pair.producer, pair.consumer) else None


@condition(
    code="CPU004",
    title="The add waits for its own matrix-vector product",
    condition="Is the producer an add that can be an output fusion with one of its operands (CPU003)?",
    why="Fused into this consumer it could not go into the dot any more, which saves more.",
    advice="Where the consumer matters more, give the dot a second user and the add is free.",
    mirrors=_SHOULD_FUSE_OUTPUT_FUSION + ", CanBeOutputFusedIntoSomeOperand",
    message="Bailing because producer can be output-fused into some operand.",
)
def goes_into_its_dot(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if has_output_fusible_operand(pair.producer) else None


# The producer of a softmax, which XLA:CPU computes exactly once.

SOFTMAX_SHIFT = register(
    code="CPU017",
    title="The input of a softmax is computed once",
    condition="Is the producer elementwise, and does it feed both a row maximum and the subtraction of "
    "that maximum before an exp?",
    why="Computed twice, the two copies may differ in the last bit (one multiplication and addition "
    "fused, the other not); the maximum is then not the maximum of what is shifted, and exp() can "
    "overflow.",
    lasting=True,
    mirrors="xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ComputeGloballyUnfusible, "
    "IsCoupledReductionShiftExpProducer",
    message="operand can not be duplicated",
    span=Span(since="0.11"),
)
