"""Rules about the code a fusion would become: too slow, too often, too much."""

from typing import Any

from hlofuse.analysis.indexing_evaluation import code_duplication as duplication
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Span
from hlofuse.rules.catalogue import Knob
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.instruction_fusion.duplication import recomputation
from hlofuse.rules.verdict import condition

MAX_CONCATENATE_OPERANDS = Knob(
    "cpu-max-concatenate-operands", 8, "operands", "A concatenate of more operands is not fused."
)
_IN_BYTES = Span(since="0.12")
MIN_MINOR_CONCATENATE = Knob(
    "cpu-min-minor-concatenate",
    128,
    "elements",
    "A minor-most concatenated dimension of this size is not fused.",
    ((_IN_BYTES, 0),),
)
MIN_MINOR_CONCATENATE_BYTES = Knob(
    "cpu-min-minor-concatenate-bytes",
    0,
    "bytes",
    "The same in bytes; both have to be reached.",
    ((_IN_BYTES, 64),),
)
MIN_CONCATENATE_BYTES = Knob(
    "cpu-min-concatenate-bytes",
    0,
    "bytes",
    "A concatenate of fewer bytes is fused along its minor-most dimension, too.",
    ((_IN_BYTES, 2048),),
)
MAX_REDUCTIONS = Knob("cpu-max-reductions", 5, "reduces", "A fusion holding more takes no further reduce.")
ALLOWED_CODE_DUPLICATION = Knob(
    "code-duplication-limit",
    15,
    "times",
    "How often an element of a producer may be computed inside a fusion.",
)


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
    "CPU007",
    "The consumer would compute an expensive producer several times",
    lasting=True,
    message="Fusion is not profitable.",
)
def reused_expensive_producer(pair: CandidatePair) -> dict[str, Any] | None:
    return recomputation(pair) if pair.producer.opcode != "fusion" else None


@condition(
    "CPU009",
    "The fusion holds enough reductions",
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
    "CPU012",
    "The producer would be computed too often inside the fusion",
    message="Code duplication too high",
    knobs=(ALLOWED_CODE_DUPLICATION,),
)
def code_duplication(pair: CandidatePair) -> dict[str, Any] | None:
    producer, consumer, state = pair.producer, pair.consumer, pair.state
    if not state.may_duplicate or consumer.opcode != "fusion":
        return None
    return duplication(state.evaluation(consumer), producer, state.settings.value(ALLOWED_CODE_DUPLICATION))


@condition(
    "CPU019",
    "A reduction over major dimensions is faster on its own",
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
