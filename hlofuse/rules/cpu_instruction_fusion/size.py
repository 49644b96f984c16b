"""Rules about the code a fusion would become: too slow, too often, too much."""

from typing import Any

from hlofuse.analysis.indexing_evaluation import code_duplication as duplication
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Span
from hlofuse.rules.catalogue import Knob
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.instruction_fusion.duplication import recomputation
from hlofuse.rules.verdict import condition

_SHOULD_FUSE = "xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ShouldFuse"

MAX_CONCATENATE_OPERANDS = Knob(
    "cpu-max-concatenate-operands", 8, "operands", "Maximum operands of a fused concatenate."
)
_IN_BYTES = Span(since="0.12")
MIN_MINOR_CONCATENATE = Knob(
    "cpu-min-minor-concatenate",
    128,
    "elements",
    "Minor-most concatenated size from which a concatenate is not fused.",
    ((_IN_BYTES, 0),),
)
MIN_MINOR_CONCATENATE_BYTES = Knob(
    "cpu-min-minor-concatenate-bytes",
    0,
    "bytes",
    "The same in bytes; both limits must be reached.",
    ((_IN_BYTES, 64),),
)
MIN_CONCATENATE_BYTES = Knob(
    "cpu-min-concatenate-bytes",
    0,
    "bytes",
    "A smaller concatenate is fused even along its minor-most dimension.",
    ((_IN_BYTES, 2048),),
)
MAX_REDUCTIONS = Knob(
    "cpu-max-reductions", 5, "reduces", "Maximum reductions in a fusion before it accepts no more."
)
ALLOWED_CODE_DUPLICATION = Knob(
    "code-duplication-limit",
    15,
    "times",
    "How often an element of a producer may be computed inside a fusion.",
)


@condition(
    code="CPU006",
    title="A large concatenate is faster on its own",
    condition="Producer or consumer is a concatenate of more than 8 operands, or one of rank 2 or more along"
    " its minor-most dimension with a result of at least 128 elements there. Since XLA 0.12: at least 64"
    " bytes there, and at least 2,048 bytes in all.",
    why="A fused concatenate selects the operand for each element. Along the minor-most dimension that is a"
    " branch in the innermost loop and prevents vectorization; many operands give a deep tree. Unfused, a"
    " concatenate is a few plain copies.",
    advice="Concatenate along a leading dimension (jnp.stack(..., axis=0)) and transpose later, concatenate"
    " fewer arrays, or apply the next function to the parts before joining them.",
    mirrors=_SHOULD_FUSE,
    message="Concatenate fusion is inefficient.",
    knobs=(
        MAX_CONCATENATE_OPERANDS,
        MIN_MINOR_CONCATENATE,
        MIN_MINOR_CONCATENATE_BYTES,
        MIN_CONCATENATE_BYTES,
    ),
    span=Span(since="0.5"),
)
def inefficient_concatenate(pair: CandidatePair) -> dict[str, Any] | None:
    settings = pair.state.settings
    for x in (pair.producer, pair.consumer):
        if x.opcode != "concatenate":
            continue
        dimension = x.dimensions[0]
        size = x.shape.dimensions[dimension]
        minor = x.shape.rank > 1 and dimension == x.shape.minor_to_major[0]
        is_long = (
            minor
            and size >= settings.value(MIN_MINOR_CONCATENATE)
            and size * ((x.shape.bit_width + 7) // 8) >= settings.value(MIN_MINOR_CONCATENATE_BYTES)
            and x.shape.byte_size >= settings.value(MIN_CONCATENATE_BYTES)
        )
        if is_long or len(x.operands) > settings.value(MAX_CONCATENATE_OPERANDS):
            return {"concatenate": x.name, "operands": len(x.operands), "minor_most": minor, "size": size}
    return None


@condition(
    code="CPU007",
    title="The consumer would recompute an expensive producer",
    condition="The producer is expensive and the consumer reads its elements more than once (as a broadcast,"
    " a matmul or a gather of few elements does).",
    why="Each read inside the kernel computes the element again. For exp, division, sqrt or a reduce that"
    " costs more than writing the value once and reading it back.",
    advice="Usually fine: the row maximum or sum of a softmax is stored, then broadcast. Multiplying by a"
    " reciprocal per row, instead of dividing by a broadcast, moves the expensive operation off the large"
    " array.",
    lasting=True,
    mirrors=_SHOULD_FUSE + ", IsExpensive; xla/service/instruction_fusion.cc: ReusesOperandElements",
    message="Fusion is not profitable.",
    history="Since 0.9 CPU has its own list: rounding f32 to bf16 is expensive, and an integer division is"
    " cheap if the dividend is a constant. Before, it was cheap if the divisor was one.",
)
def reused_expensive_producer(pair: CandidatePair) -> dict[str, Any] | None:
    return recomputation(pair) if pair.producer.opcode != "fusion" else None


@condition(
    code="CPU009",
    title="The fusion has too many reductions",
    condition="The producer is a reduce and the consumer fusion already has more than 5.",
    why="LLVM unrolls the loop of each reduce; many in one kernel make compilation very slow.",
    advice="The seventh reduce starts a new kernel. Stack the arrays and reduce once: it compiles and runs"
    " faster.",
    mirrors=_SHOULD_FUSE,
    message="Too many reductions inside single fusion.",
    span=Span(since="0.6"),
    knobs=(MAX_REDUCTIONS,),
)
def too_many_reductions(pair: CandidatePair) -> dict[str, Any] | None:
    if pair.consumer.opcode != "fusion" or pair.producer.opcode != "reduce":
        return None
    count = sum(x.opcode == "reduce" for x in pair.consumer.fused_computation)
    return {"reductions": count} if count > pair.state.settings.value(MAX_REDUCTIONS) else None


@condition(
    code="CPU012",
    title="The producer would be computed too often inside the fusion",
    condition="Each element of the producer would be computed more than 15 times, or more than once for a"
    " concatenate, dot, dynamic-update-slice, pad, reduce or reduce-window. Broadcasts are always allowed.",
    why="The emitter computes an element again for each different index. Diamonds of reshapes, slices, pads"
    " and concatenates multiply the work and the size of the code.",
    advice="Break the diamond: materialize the shared value (jax.lax.optimization_barrier), or replace"
    " shifted copies of the same array (rolls, pads, stencils by slicing) by a convolution or reduce_window.",
    mirrors=_SHOULD_FUSE + "; xla/service/fusion_node_indexing_evaluation.cc: CodeDuplicationTooHigh",
    message="Code duplication too high",
    knobs=(ALLOWED_CODE_DUPLICATION,),
)
def code_duplication(pair: CandidatePair) -> dict[str, Any] | None:
    producer, consumer, state = pair.producer, pair.consumer, pair.state
    if not state.may_duplicate or consumer.opcode != "fusion":
        return None
    return duplication(state.evaluation(consumer), producer, state.settings.value(ALLOWED_CODE_DUPLICATION))


@condition(
    code="CPU019",
    title="A reduction over major dimensions is faster on its own",
    condition="Producer or consumer is a reduce that keeps its operand's minor-most dimension.",
    why="Unfused, such a reduce is vectorized along the dimension it keeps. Inside a fusion it is a plain"
    " loop for each element of the result.",
    advice="Reduce over the last axis (axis=-1), or use XLA 0.6 or later, which fuses these reductions.",
    mirrors=_SHOULD_FUSE,
    message="Not fusing reductions over major dimensions",
    span=Span(until="0.5"),
)
def reduction_over_major(pair: CandidatePair) -> dict[str, Any] | None:
    for x in (pair.consumer, pair.producer):
        if x.opcode == "reduce" and _leaves_minor(x):
            return {"reduce": x.name}
    return None


def _leaves_minor(reduce: Instruction) -> bool:
    """True unless the minor-most dimension is among those reduced."""
    layout = reduce.operands[0].shape.minor_to_major
    return not layout or layout[0] not in reduce.dimensions
