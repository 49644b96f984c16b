"""Rules that allow: what the consumer is decides last."""

from typing import Any

from hlofuse.analysis.cpu_predicates import is_loop_fusible
from hlofuse.rules.catalogue import Knob
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.verdict import condition, requirement

_SHOULD_FUSE = "xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ShouldFuse"

MAX_VECTOR_BYTES = Knob(
    "cpu-max-fused-dot-vector", 16 * 1024, "bytes", "A dot takes its matrix in only beside a smaller vector."
)


@condition(
    code="CPU013",
    title="The matrix of a small matrix-vector product is computed on the fly",
    condition="Is the consumer a dot of rank 0 or 1, the producer its matrix operand, and the other "
    "operand a vector of less than 16 KiB?",
    why="The vector stays in the first-level cache, so a plain loop over the matrix is good enough, "
    "and the matrix need not be written at all.",
    advice="A vector of 16 KiB or more (4096 f32) turns this off.",
    mirrors=_SHOULD_FUSE,
    allows=True,
    knobs=(MAX_VECTOR_BYTES,),
)
def small_vector_dot(pair: CandidatePair) -> dict[str, Any] | None:
    consumer = pair.consumer
    if consumer.opcode != "dot" or consumer.shape.rank > 1:
        return None
    limit = pair.state.settings.value(MAX_VECTOR_BYTES)
    for number, other in ((1, 0), (0, 1)):
        vector = consumer.operands[other].shape
        if vector.rank == 1 and pair.operand_index == number and vector.byte_size < limit:
            return {"vector_bytes": vector.byte_size, "limit_bytes": int(limit)}
    return None


@condition(
    code="CPU014",
    title="The consumer is a loop fusion",
    condition="The consumer is a kLoop fusion, and no earlier rule refused.",
    why="A loop fusion can inline any producer that can be emitted as a loop.",
    mirrors=_SHOULD_FUSE,
    allows=True,
)
def consumer_is_loop_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.consumer.fusion_kind == "kLoop" else None


@condition(
    code="CPU016",
    title="The consumer is elementwise or can be emitted as a loop",
    condition="The consumer can inline the code for its operand's elements, and no earlier rule refused.",
    why="Producer and consumer become one loop; the value between them is never written to memory.",
    mirrors=_SHOULD_FUSE + ", CanBeLoopFused",
    allows=True,
)
def consumer_is_loop_fusible(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if is_loop_fusible(pair.consumer) else None


@requirement(
    code="CPU015",
    title="The consumer cannot be fused into",
    condition="The consumer is neither a loop fusion nor an operation that can be emitted as a loop.",
    why="Matmuls, convolutions, sorts, scatters, reduce-windows, custom calls and the result tuple read"
    " complete arrays from memory.",
    advice="The tuple at the end of a function is not a kernel: the producer is written because it is"
    " returned.",
    mirrors=_SHOULD_FUSE,
    message="Not fusing: not found a fusible case",
)
def not_found_a_fusible_case(pair: CandidatePair) -> dict[str, Any] | None:
    return {"opcode": pair.consumer.opcode}
