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

_FILE = "xla/backends/gpu/transforms/multi_output_fusion.cc"
_CANDIDATE = f"{_FILE}: ProducerCandidateIsFusible"
_PRODUCER = "xla/service/gpu/gpu_fusible.cc: IsProducerMultiOutputFusible"

SAVES_TIME = outcome(
    code="GM002",
    title="A producer with other users becomes another result of a consumer's kernel",
    condition="One kernel that computes and writes both is not slower than two kernels, and all other"
    " conditions hold. Multi-output fusions are preferred as consumers, then fusions.",
    why="The consumer does not read back the producer's result, and one launch is saved.",
    mirrors=f"{_FILE}: MultiOutputFusion::DoMultiOutputFusion",
    allows=True,
    history="Until 0.4.35 the times of a producer and all its consumers were compared as in FM016.",
)
ANOTHER_PREFERRED = outcome(
    code="GM034",
    title="Another consumer is preferred",
    condition="Another consumer can fuse with the producer and is preferred: it has more results, or is of"
    " the same kind and comes first.",
    why="The producer can be computed and written in one kernel only.",
    mirrors=f"{_FILE}: MultiOutputFusion::DoMultiOutputFusion, SelectPreferredFusionCandidate",
)


@condition(
    code="GM020",
    title="The producer already has several results",
    condition="The producer is a multi-output fusion.",
    why="XLA does not merge such a kernel into its consumer.",
    mirrors=_PRODUCER,
    message="Producer is a multi-output fusion",
)
def producer_is_multi_output(lone: LoneProducer) -> dict[str, Any] | None:
    return {} if lone.producer.is_multi_output_fusion else None


@requirement(
    code="GM021",
    title="The producer updates an array in place",
    condition="The producer overwrites one of its operands (dynamic-update-slice, scatter).",
    why="Another result of the same kernel could read an element that is already overwritten.",
    mirrors=_PRODUCER,
    message="In-place operations are present",
)
def producer_in_place(lone: LoneProducer) -> dict[str, Any] | None:
    return {} if in_place_pairs(lone.producer, lone.state.model.release) else None


@requirement(
    code="GM022",
    title="The producer cannot be emitted per element",
    condition="The producer is not a loop: it is a tiled transpose or reduction fusion, a scatter or a"
    " library call.",
    why="The consumer's loop computes the producer element by element.",
    mirrors="xla/service/gpu/gpu_fusible.cc: IsLoopFusibleAsProducer",
    message="producer is not loop-fusible",
)
def producer_not_a_loop(lone: LoneProducer) -> dict[str, Any] | None:
    producer = lone.producer
    if is_loop_fusible_producer(producer, lone.state.model.release):
        return None
    return {"opcode": producer.opcode}


@condition(
    code="GM023",
    title="The producer transposes in memory",
    condition="The producer, or an operation inside it, is a copy or transpose that is not a bitcast.",
    why="The consumer's loop visits elements in the order of its own result, which through a transpose is a"
    " bad order for memory.",
    advice="Give producer and consumer the same layout.",
    mirrors="xla/service/gpu/gpu_fusible.cc: IsPhysicallyTransposing",
    message="producer is physically transposing",
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
    code="GM030",
    title="The consumer cannot have more results",
    condition="The consumer is not a reduction, tiled transpose, loop fusion or elementwise operation.",
    why="Only those emitters can write several results. A kCustom fusion cannot be fused into.",
    mirrors="xla/service/gpu/gpu_fusible.cc: IsFusibleAsMultiOutputFusionRoot",
    message="consumer not eligible as multi-output fusion root.",
)
def consumer_not_a_root(pair: ProducerPair) -> dict[str, Any] | None:
    return None if is_possible_root(pair.consumer, pair.state.model) else {"opcode": pair.consumer.opcode}


def producer_shapes_differ(pair: ProducerPair) -> Verdict | None:
    return shapes_differ(pair.consumer, pair.producer, pair.state.model, pair.state.settings)


CYCLE = essential(
    code="GM031",
    title="An operation between the two needs the kernel's result",
    condition="Another operand of the consumer depends on the producer.",
    why="The kernel would depend on its own result.",
    mirrors=f"{_FILE}: OperandReachableFromProducer",
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
    code="GM032",
    title="Too much code would be copied",
    condition="The kernel would have more than 10000 emitted instructions, counting duplicates.",
    why="Compilation would take too long.",
    advice="See PF013.",
    mirrors=_CANDIDATE,
    message="will generate too large IR",
    knobs=(MAX_IR_SIZE,),
)
def too_much_code(pair: ProducerPair) -> dict[str, Any] | None:
    size = pair.state.model.merged_ir_size(pair.producer, pair.consumer)
    limit = pair.state.settings.value(MAX_IR_SIZE)
    return {"instructions": size, "limit": int(limit)} if size > limit else None


@condition(
    code="GM033",
    title="One kernel would be slower than two",
    condition="By XLA's model, one kernel that computes and writes both takes longer than two, launches"
    " included.",
    why="The producer is recomputed if the consumer reads its elements more than once.",
    mirrors="xla/service/gpu/model/gpu_performance_model.cc: "
    "GpuPerformanceModel::EstimateRunTimesForMultiOutputFusion",
    message="will execute slower if fused",
    estimated=True,
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
