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
    title="A producer with other users becomes a further result of a consumer's kernel",
    condition="Does one kernel that computes both, and writes both, take no longer than the two apart, "
    "and is everything legal? Multi-output fusions are preferred as consumers, then fusions.",
    why="The consumer need not read what the producer wrote, and one kernel less is launched.",
    mirrors=f"{_FILE}: MultiOutputFusion::DoMultiOutputFusion",
    allows=True,
    history="Until 0.4.35 the times of a producer and all its consumers were compared as FM016 says.",
)
ANOTHER_PREFERRED = outcome(
    code="GM034",
    title="Another consumer is preferred",
    condition="Is there another consumer whose kernel the producer may join, with more results already, "
    "or of the same kind and before this one?",
    why="The producer can be computed and written in one kernel only.",
    mirrors=f"{_FILE}: MultiOutputFusion::DoMultiOutputFusion, SelectPreferredFusionCandidate",
)


@condition(
    code="GM020",
    title="The producer has several results already",
    condition="Is the producer a multi-output fusion?",
    why="XLA does not merge such a kernel into its consumer.",
    mirrors=_PRODUCER,
    message="Producer is a multi-output fusion",
)
def producer_is_multi_output(lone: LoneProducer) -> dict[str, Any] | None:
    return {} if lone.producer.is_multi_output_fusion else None


@requirement(
    code="GM021",
    title="The producer updates an array in place",
    condition="Does the producer write over one of its operands (dynamic-update-slice, scatter)?",
    why="Another result of the same kernel might read an element that has been overwritten already.",
    mirrors=_PRODUCER,
    message="In-place operations are present",
)
def producer_in_place(lone: LoneProducer) -> dict[str, Any] | None:
    return {} if in_place_pairs(lone.producer, lone.state.model.release) else None


@requirement(
    code="GM022",
    title="The producer has no code for a single element",
    condition="Is the producer something else than a loop: a tiled transpose or reduction fusion, a "
    "scatter, a library call?",
    why="Inside the consumer's loop the producer is computed element by element.",
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
    title="The producer moves elements about in memory",
    condition="Is the producer, or something inside it, a copy or a transpose that is no bitcast?",
    why="The consumer's loop visits elements in the order of its own result; read through a transpose "
    "that order is a bad one for memory.",
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
    title="The consumer cannot have further results",
    condition="Is the consumer neither a reduction, nor a tiled transpose, nor a loop fusion, nor "
    "element-wise?",
    why="Only those emitters can write several results. A fusion of kind kCustom takes nothing in.",
    mirrors="xla/service/gpu/gpu_fusible.cc: IsFusibleAsMultiOutputFusionRoot",
    message="consumer not eligible as multi-output fusion root.",
)
def consumer_not_a_root(pair: ProducerPair) -> dict[str, Any] | None:
    return None if is_possible_root(pair.consumer, pair.state.model) else {"opcode": pair.consumer.opcode}


def producer_shapes_differ(pair: ProducerPair) -> Verdict | None:
    return shapes_differ(pair.consumer, pair.producer, pair.state.model, pair.state.settings)


CYCLE = essential(
    code="GM031",
    title="Something between the two would need the kernel's result",
    condition="Does another operand of the consumer depend on the producer?",
    why="The kernel would have to have run before that operand can be computed, which it needs to start.",
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
    condition="Would more than 10000 instructions be emitted for the kernel, copies counted?",
    why="Compiling would take for ever.",
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
    condition="Does one kernel that computes and writes both take longer, by XLA's model, than the two "
    "apart, launches included?",
    why="The producer's work is repeated where the consumer reads its elements more than once.",
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
