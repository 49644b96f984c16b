"""Rules that allow: what the consumer is decides last."""

from typing import Any

from hlofuse.analysis.cpu_predicates import is_loop_fusible
from hlofuse.rules.catalogue import Knob
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.verdict import condition, requirement

MAX_VECTOR_BYTES = Knob(
    "cpu-max-fused-dot-vector", 16 * 1024, "bytes", "A dot takes its matrix in only beside a smaller vector."
)


@condition(
    "CPU013",
    "The matrix of a small matrix-vector product is computed on the fly",
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


@condition("CPU014", "The consumer is a loop fusion", allows=True)
def consumer_is_loop_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.consumer.fusion_kind == "kLoop" else None


@condition("CPU016", "The consumer is elementwise or has a loop form", allows=True)
def consumer_is_loop_fusible(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if is_loop_fusible(pair.consumer) else None


@requirement("CPU015", "The consumer takes nothing in", message="Not fusing: not found a fusible case")
def not_found_a_fusible_case(pair: CandidatePair) -> dict[str, Any] | None:
    return {"opcode": pair.consumer.opcode}
