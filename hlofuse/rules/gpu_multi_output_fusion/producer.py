"""Rules about a producer that becomes a further result of a consumer's kernel."""

from typing import Any

from hlofuse.analysis.elementwise import is_elementwise, is_fusible
from hlofuse.analysis.in_place import in_place_pairs
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import microseconds
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import essential, outcome
from hlofuse.rules.gpu_fusible import has_tiled_transpose, is_loop_fusible_producer, is_physically_transposing
from hlofuse.rules.gpu_multi_output_fusion.candidate import LoneProducer, ProducerPair
from hlofuse.rules.gpu_multi_output_fusion.shapes import shapes_differ
from hlofuse.rules.priority_fusion.budget import MAX_IR_SIZE, over_budget
from hlofuse.rules.verdict import Verdict, condition, requirement

SAVES_TIME = outcome(
    "GM002", "A producer with other users becomes a further result of a consumer's kernel", allows=True
)
ANOTHER_PREFERRED = outcome("GM034", "Another consumer is preferred")


@condition("GM020", "The producer has several results already", message="Producer is a multi-output fusion")
def producer_is_multi_output(lone: LoneProducer) -> dict[str, Any] | None:
    return {} if lone.producer.is_multi_output_fusion else None


@requirement("GM021", "The producer updates an array in place", message="In-place operations are present")
def producer_in_place(lone: LoneProducer) -> dict[str, Any] | None:
    return {} if in_place_pairs(lone.producer, lone.state.model.release) else None


@requirement("GM022", "The producer has no code for a single element", message="producer is not loop-fusible")
def producer_not_a_loop(lone: LoneProducer) -> dict[str, Any] | None:
    producer = lone.producer
    if is_loop_fusible_producer(producer, lone.state.model.release):
        return None
    return {"opcode": producer.opcode}


@condition(
    "GM023", "The producer moves elements about in memory", message="producer is physically transposing"
)
def producer_transposes(lone: LoneProducer) -> dict[str, Any] | None:
    return {} if is_physically_transposing(lone.producer) else None


PRODUCER_RULES = (producer_is_multi_output, producer_in_place, producer_not_a_loop, producer_transposes)
"""`IsProducerMultiOutputFusible`, in its order."""


def is_possible_root(instruction: Instruction, model: KernelModel) -> bool:
    """It may share its kernel with another result (`IsFusibleAsMultiOutputFusionRoot`)."""
    if not is_fusible(instruction) or instruction.fusion_kind == "kCustom":
        return False
    if instruction.fusion_kind == "kLoop" or is_elementwise(instruction):
        return True
    summary = model.summary(instruction)
    return summary.is_reduction or has_tiled_transpose(instruction, model)


@requirement(
    "GM030",
    "The consumer cannot have further results",
    message="consumer not eligible as multi-output fusion root.",
)
def consumer_not_a_root(pair: ProducerPair) -> dict[str, Any] | None:
    return None if is_possible_root(pair.consumer, pair.state.model) else {"opcode": pair.consumer.opcode}


def producer_shapes_differ(pair: ProducerPair) -> Verdict | None:
    return shapes_differ(pair.consumer, pair.producer, pair.state.model, pair.state.settings)


CYCLE = essential(
    "GM031",
    "Something between the two would need the kernel's result",
    message="… would introduce a cycle when fused",
)


def creates_cycle(pair: ProducerPair) -> Verdict | None:
    producer, reaches = pair.producer, pair.state.reaches
    for operand in pair.consumer.operands:
        if operand is not producer and reaches(producer, operand):
            message = f"{producer.name} would introduce a cycle when fused"
            return Verdict(CYCLE, {"through": operand.name}, message)
    return None


def producer_over_budget(pair: ProducerPair) -> Verdict | None:
    state = pair.state
    return over_budget(pair.producer, pair.consumer, state.model, state.settings, producer_consumer=False)


@condition(
    "GM032", "Too much code would be copied", message="will generate too large IR", knobs=(MAX_IR_SIZE,)
)
def too_much_code(pair: ProducerPair) -> dict[str, Any] | None:
    size = pair.state.model.merged_ir_size(pair.producer, pair.consumer)
    limit = pair.state.settings.value(MAX_IR_SIZE)
    return {"instructions": size, "limit": int(limit)} if size > limit else None


@condition(
    "GM033", "One kernel would be slower than two", message="will execute slower if fused", estimated=True
)
def slower(pair: ProducerPair) -> dict[str, Any] | None:
    fused, unfused = pair.state.model.multi_output_times(pair.producer, pair.consumer)
    if fused <= unfused:
        return None
    return {"us_fused": microseconds(fused), "us_unfused": microseconds(unfused)}


CONSUMER_RULES = (
    consumer_not_a_root,
    producer_shapes_differ,
    creates_cycle,
    producer_over_budget,
    too_much_code,
    slower,
)
"""`ProducerCandidateIsFusible`, in its order."""
