"""Rules of GpuInstructionFusion (`xla/service/gpu/transforms/instruction_fusion.cc`): codes GI…. `RULES` is
the order in which `GpuInstructionFusion::ShouldFuse` asks, `FUSIBLE_RULES` that of
`IsProducerConsumerFusible`, which FusionMerger asks as well."""

from dataclasses import dataclass
from typing import Any

from hlofuse.analysis.convolution import window_dimensions, window_size
from hlofuse.analysis.indexing_evaluation import code_duplication as duplication
from hlofuse.cost.gpu.merging import MergingModel
from hlofuse.ir import Instruction, reach
from .catalogue import Knob
from .gpu_fusible import (
    has_tiled_transpose,
    is_input_fusible,
    is_loop_fusible_consumer,
    is_loop_fusible_producer,
    is_physically_transposing,
    is_scatter_fusion,
    updated_operand,
)
from .instruction_fusion import (
    CandidatePair,
    FusionState,
    expensive_would_be_duplicated,
    may_fuse_into_in_place,
    pass_cannot_duplicate,
    producer_is_root,
    recomputation,
)
from .priority_fusion.conditions import kernel_over_budget
from .verdict import Answer, condition, requirement


@dataclass(slots=True, kw_only=True)
class GpuFusionState(FusionState):
    """State of a run of the pass, in addition to the graph."""

    model: MergingModel


@dataclass(slots=True)
class GpuPair(CandidatePair):
    """The question: `producer` is operand `operand_index` of `consumer`."""

    state: GpuFusionState


# Pairs that can be one kernel at all (`IsProducerConsumerFusible`).
@requirement(
    "GI010", "The producer cannot be emitted per element", message="the producer is not loop-fusible"
)
def producer_not_loop_fusible(pair: GpuPair) -> Answer:
    model = pair.state.model
    if is_loop_fusible_producer(pair.producer, model.release) or has_tiled_transpose(pair.producer, model):
        return None
    return {"opcode": pair.producer.opcode}


@requirement(
    "GI011",
    "The reduction uses several blocks for one result",
    message="Reduction output fusion only works for race free reductions",
)
def reduction_not_race_free(pair: GpuPair) -> Answer:
    hero = _reduction_hero(pair)
    if hero is None or hero.race_free:
        return None
    return {"sizes": list(hero.reduction.sizes) if hero.reduction is not None else []}


@condition(
    "GI012",
    "More than a chain of elementwise operations follows the reduction",
    message="Reductions from/to continuous dims epilogue not fusible",
)
def epilogue_not_a_chain(pair: GpuPair) -> Answer:
    if _reduction_hero(pair) is None:
        return None
    consumer, atom = pair.consumer, pair.state.model.atoms.atom
    body = list(consumer.fused_computation) if consumer.is_fusion else [consumer]
    for inner in body:
        if not inner.is_parameter and not atom(inner).intermediate_chain:
            return {"operation": inner.name}
    return None


@condition(
    "GI013", "The reduction has several users", message="reduction output fusion only works for single user"
)
def reduction_has_users(pair: GpuPair) -> Answer:
    if _reduction_hero(pair) is None or pair.producer.user_count <= 1:
        return None
    return {"users": pair.producer.user_count}


@requirement(
    "GI014", "Nothing follows a scatter in its kernel", message="do not fuse into the output of scatter"
)
def producer_is_scatter(pair: GpuPair) -> bool:
    return is_scatter_fusion(pair.producer)


@requirement(
    "GI015",
    "The producer computes the array that a scatter updates",
    message="do not fuse into the in-place operand of scatter",
)
def producer_is_scattered_into(pair: GpuPair) -> bool:
    return updated_operand(pair.consumer) is pair.producer


@requirement(
    "GI016",
    "The producer reads the array that a scatter updates",
    message="Producer uses the in-place operand of a scatter",
)
def producer_reads_scattered_into(pair: GpuPair) -> bool:
    array = updated_operand(pair.consumer)
    return array is not None and array in pair.producer.operands


@requirement(
    "GI017",
    "The consumer cannot be fused into",
    message="the consumer is not input-fusible and not loop-fusible",
)
def consumer_takes_nothing(pair: GpuPair) -> Answer:
    model = pair.state.model
    if is_input_fusible(pair.consumer, model) or is_loop_fusible_consumer(pair.consumer, model):
        return None
    return {"opcode": pair.consumer.opcode}


@requirement(
    "GI018",
    "The producer has several results",
    message="the producer is not fusible as it is a multi-output fusion",
)
def producer_has_several_results(pair: GpuPair) -> bool:
    return pair.producer.is_multi_output_fusion


@condition("GI019", "A constant does not start a kernel", message="not fusing constant")
def constant_stays(pair: GpuPair) -> Answer:
    producer = pair.producer
    if not producer.is_constant:
        return None
    if producer.shape.is_effective_scalar and pair.consumer.is_fusion:
        return None
    return {"elements": producer.element_count}


FUSIBLE_RULES = (
    producer_not_loop_fusible,
    reduction_not_race_free,
    epilogue_not_a_chain,
    reduction_has_users,
    producer_is_scatter,
    producer_is_scattered_into,
    producer_reads_scattered_into,
    consumer_takes_nothing,
    producer_has_several_results,
    constant_stays,
    may_fuse_into_in_place,
)  # `IsProducerConsumerFusible`, in its order


def _reduction_hero(pair: GpuPair) -> Any:
    """The hero of a producer that is a parallel reduction; None for other producers."""
    summary = pair.state.model.summary(pair.producer)
    return summary.roots[0].hero[0] if summary.is_reduction else None


ALLOWED_CODE_DUPLICATION = Knob("gpu-code-duplication-limit", 15)
MAX_REPEATED = Knob("gpu-heavy-computation", 10)


@condition("GI001", "The producer is already a fusion", message="the producer is a fusion")
def producer_is_a_fusion(pair: GpuPair) -> bool:
    return pair.producer.is_fusion


@requirement("GI002", "The consumer is a custom fusion", message="the consumer is a custom fusion")
def consumer_is_custom(pair: GpuPair) -> bool:
    return pair.consumer.fusion_kind == "kCustom"


@condition(
    "GI003",
    "The consumer would recompute an expensive producer",
    message="the producer is expensive, and the consumer reuses inputs",
)
def reused_expensive_producer(pair: GpuPair) -> Answer:
    return recomputation(pair)


@condition(
    "GI004",
    "A reduction would read its input uncoalesced",
    message="fusing the producer would break read coalescing",
)
def breaks_coalescing(pair: GpuPair) -> bool:
    if not pair.state.model.summary(pair.consumer).is_reduction:
        return False
    return is_physically_transposing(pair.producer)


@condition(
    "GI005",
    "A long computation would be repeated for each element",
    message="the fusion would create a heavy computation",
    knobs=(MAX_REPEATED,),
)
def creates_heavy_computation(pair: GpuPair) -> Answer:
    producer, consumer = pair.producer, pair.consumer
    body = list(producer.fused_computation) if producer.is_fusion else [producer]
    heavy = next((x for x in body if _is_heavy(x, pair)), None)
    if heavy is None:
        return None
    if not consumer.is_fusion:
        return {"heavy": heavy.name} if _reads_repeatedly(consumer) else None
    start = consumer.parameter_of(producer)
    repeated_by = next(filter(_reads_repeatedly, reach([start], lambda x: x.users)), None)
    return {"heavy": heavy.name, "repeated_by": repeated_by.name} if repeated_by is not None else None


@condition(
    "GI006",
    "The producer would be computed too often inside the fusion",
    message="the fusion would result in an overly large code duplication",
    knobs=(ALLOWED_CODE_DUPLICATION,),
)
def code_duplication(pair: GpuPair) -> Answer:
    state = pair.state
    if not pair.consumer.is_fusion:
        return None
    limit = state.settings.value(ALLOWED_CODE_DUPLICATION)
    return duplication(state.evaluation(pair.consumer), pair.producer, limit, state.uses)


def _is_heavy(instruction: Instruction, pair: GpuPair) -> bool:
    """Costly for one element (`IsExpensiveToRepeat`)."""
    limit = pair.state.settings.value(MAX_REPEATED)
    if instruction.is_reduce and not pair.state.model.summary(instruction).is_reduction:
        results = 1 if instruction.is_tuple else instruction.element_count
        return instruction.operand.element_count // max(results, 1) > limit
    if instruction.opcode == "reduce-window":
        return window_size(instruction) > limit
    return False


def _reads_repeatedly(instruction: Instruction) -> bool:
    """It reads an element of an operand for several of its own (`IfFusedReadsElementsMultipleTimes`)."""
    opcode = instruction.opcode
    if opcode in ("gather", "broadcast"):
        return instruction.element_count > instruction.operand.element_count
    if opcode == "reduce-window":
        return any(d.size > d.stride for d in window_dimensions(instruction))
    return False


RULES = (
    producer_is_a_fusion,
    consumer_is_custom,
    reused_expensive_producer,
    breaks_coalescing,
    *FUSIBLE_RULES,
    creates_heavy_computation,
    producer_is_root,
    expensive_would_be_duplicated,
    pass_cannot_duplicate,
    may_fuse_into_in_place,
    kernel_over_budget,
    code_duplication,
)
