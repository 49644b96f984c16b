"""Rules of CpuInstructionFusion (`xla/service/cpu/cpu_instruction_fusion.cc`): CPU…; `RULES` in its order."""

from hlofuse.analysis.cpu_predicates import is_loop_fusible, is_output_fusible
from hlofuse.analysis.indexing_evaluation import code_duplication as duplication
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Span
from .catalogue import Knob, register
from .instruction_fusion import (
    CandidatePair,
    expensive_would_be_duplicated,
    may_fuse_into_in_place,
    pass_cannot_duplicate,
    producer_is_root,
    recomputation,
)
from .verdict import Answer, condition, requirement

# Rules that allow: what the consumer is decides last.

MAX_VECTOR_BYTES = Knob("cpu-max-fused-dot-vector", 16 * 1024)


@condition(
    "CPU013",
    "The matrix of a small matrix-vector product is computed on the fly",
    allows=True,
    knobs=(MAX_VECTOR_BYTES,),
)
def small_vector_dot(pair: CandidatePair) -> Answer:
    consumer = pair.consumer
    if not consumer.is_dot or consumer.rank > 1:
        return None
    limit = pair.state.settings.value(MAX_VECTOR_BYTES)
    for number, other in ((1, 0), (0, 1)):
        vector = consumer.operands[other].shape
        if vector.rank == 1 and pair.operand_index == number and vector.byte_size < limit:
            return {"vector_bytes": vector.byte_size, "limit_bytes": int(limit)}
    return None


@condition("CPU014", "The consumer is a loop fusion", allows=True)
def consumer_is_loop_fusion(pair: CandidatePair) -> bool:
    return pair.consumer.fusion_kind == "kLoop"


@condition("CPU016", "The consumer is elementwise or can be emitted as a loop", allows=True)
def consumer_is_loop_fusible(pair: CandidatePair) -> bool:
    return is_loop_fusible(pair.consumer)


@requirement("CPU015", "The consumer cannot be fused into", message="Not fusing: not found a fusible case")
def not_found_a_fusible_case(pair: CandidatePair) -> Answer:
    return {"opcode": pair.consumer.opcode}


# Rules about what the producer is, and about consumers that are left alone.
@requirement(
    "CPU001",
    "The consumer is a library fusion or belongs to a computation that is emitted as a whole",
    message="Don't fuse instructions from custom fusions/calls",
    span=Span("0.5"),
)
def skipped_consumer(pair: CandidatePair) -> bool:
    return pair.consumer in pair.state.skipped


@condition(
    "CPU002",
    "A constant array stays in memory",
    lasting=True,
    message="Don't fuse non-scalar constants.",
    span=Span("0.7"),
)
def non_scalar_constant(pair: CandidatePair) -> Answer:
    producer = pair.producer
    if not producer.is_constant or producer.shape.is_effective_scalar:
        return None
    return {"elements": producer.element_count, "bytes": producer.byte_size}


MAX_CONSTANT_BYTES = Knob("cpu-max-fused-constant", 10_000)


@condition(
    "CPU018",
    "A large constant stays in memory",
    lasting=True,
    message="Don't fuse large constants.",
    knobs=(MAX_CONSTANT_BYTES,),
    span=Span("0.5", "0.6"),
)
def large_constant(pair: CandidatePair) -> Answer:
    producer = pair.producer
    limit = pair.state.settings.value(MAX_CONSTANT_BYTES)
    if not producer.is_constant or producer.byte_size <= limit:
        return None
    return {"bytes": producer.byte_size, "limit_bytes": int(limit)}


@requirement(
    "CPU005",
    "The producer cannot be emitted as a loop",
    lasting=True,
    message="Producer is not loop-fusible.",
)
def producer_not_loop_fusible(pair: CandidatePair) -> Answer:
    return None if is_loop_fusible(pair.producer) else {"opcode": pair.producer.opcode}


@condition(
    "CPU010",
    "A constant alone does not start a fusion",
    message="Not fusing: insufficient non-constant nodes.",
)
def constant_alone(pair: CandidatePair) -> bool:
    return pair.producer.is_constant and not pair.consumer.is_fusion


@condition(
    "CPU011",
    "The producer is already a fusion",
    lasting=True,
    message="Not fusing: producer is itself a fusion node.",
)
def producer_is_a_fusion(pair: CandidatePair) -> bool:
    return pair.producer.is_fusion


# Rules that let an add be done while a matrix-vector product writes its results.
@condition("CPU003", "The add is fused into its matrix-vector product", allows=True)
def output_fusion(pair: CandidatePair) -> bool:
    return is_output_fusible(pair.producer, pair.consumer)


@condition(
    "CPU004",
    "The add is reserved for its own matrix-vector product",
    message="Bailing because producer can be output-fused into some operand.",
)
def goes_into_its_dot(pair: CandidatePair) -> bool:
    return pair.producer.opcode == "add" and any(
        is_output_fusible(o, pair.producer) for o in pair.producer.operands
    )


# The producer of a softmax, which XLA:CPU computes exactly once.

SOFTMAX_SHIFT = register(
    "CPU017",
    "The input of a softmax is computed once",
    lasting=True,
    message="operand can not be duplicated",
    span=Span("0.11"),
)


# Rules about the code that a fusion would become: too slow, too often, too much.

MAX_CONCATENATE_OPERANDS = Knob("cpu-max-concatenate-operands", 8)
_IN_BYTES = Span("0.12")
MIN_MINOR_CONCATENATE = Knob("cpu-min-minor-concatenate", 128, ((_IN_BYTES, 0),))
MIN_MINOR_CONCATENATE_BYTES = Knob("cpu-min-minor-concatenate-bytes", 0, ((_IN_BYTES, 64),))
MIN_CONCATENATE_BYTES = Knob("cpu-min-concatenate-bytes", 0, ((_IN_BYTES, 2048),))
MAX_REDUCTIONS = Knob("cpu-max-reductions", 5)
ALLOWED_CODE_DUPLICATION = Knob("code-duplication-limit", 15)


@condition(
    "CPU006",
    "A large concatenate is faster on its own",
    message="Concatenate fusion is inefficient.",
    knobs=(
        MAX_CONCATENATE_OPERANDS,
        MIN_MINOR_CONCATENATE,
        MIN_MINOR_CONCATENATE_BYTES,
        MIN_CONCATENATE_BYTES,
    ),
    span=Span("0.5"),
)
def inefficient_concatenate(pair: CandidatePair) -> Answer:
    settings = pair.state.settings
    for x in (pair.producer, pair.consumer):
        if not x.is_concatenate:
            continue
        dimension = x.dimension
        size = x.sizes[dimension]
        minor = x.rank > 1 and dimension == x.minor_to_major[0]
        is_long = (
            minor
            and size >= settings.value(MIN_MINOR_CONCATENATE)
            and size * ((x.shape.bit_width + 7) // 8) >= settings.value(MIN_MINOR_CONCATENATE_BYTES)
            and x.byte_size >= settings.value(MIN_CONCATENATE_BYTES)
        )
        if is_long or x.operand_count > settings.value(MAX_CONCATENATE_OPERANDS):
            return {"concatenate": x.name, "operands": x.operand_count, "minor_most": minor, "size": size}
    return None


@condition(
    "CPU007",
    "The consumer would recompute an expensive producer",
    lasting=True,
    message="Fusion is not profitable.",
)
def reused_expensive_producer(pair: CandidatePair) -> Answer:
    return recomputation(pair) if not pair.producer.is_fusion else None


@condition(
    "CPU009",
    "The fusion has too many reductions",
    message="Too many reductions inside single fusion.",
    span=Span("0.6"),
    knobs=(MAX_REDUCTIONS,),
)
def too_many_reductions(pair: CandidatePair) -> Answer:
    if not pair.consumer.is_fusion or not pair.producer.is_reduce:
        return None
    count = sum(x.is_reduce for x in pair.consumer.fused_computation)
    return {"reductions": count} if count > pair.state.settings.value(MAX_REDUCTIONS) else None


@condition(
    "CPU012",
    "The producer would be computed too often inside the fusion",
    message="Code duplication too high",
    knobs=(ALLOWED_CODE_DUPLICATION,),
)
def code_duplication(pair: CandidatePair) -> Answer:
    producer, consumer, state = pair.producer, pair.consumer, pair.state
    if not state.may_duplicate or not consumer.is_fusion:
        return None
    limit = state.settings.value(ALLOWED_CODE_DUPLICATION)
    return duplication(state.evaluation(consumer), producer, limit, state.uses)


@condition(
    "CPU019",
    "A reduction over major dimensions is faster on its own",
    message="Not fusing reductions over major dimensions",
    span=Span(until="0.5"),
)
def reduction_over_major(pair: CandidatePair) -> Answer:
    for x in (pair.consumer, pair.producer):
        if x.is_reduce and _leaves_minor(x):
            return {"reduce": x.name}
    return None


def _leaves_minor(reduce: Instruction) -> bool:
    """True unless the minor-most dimension is among those reduced."""
    layout = reduce.operand.minor_to_major
    return not layout or layout[0] not in reduce.dimensions


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
