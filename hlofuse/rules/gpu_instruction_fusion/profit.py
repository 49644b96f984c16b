"""Rules of GpuInstructionFusion itself: what would be slow, or too much code."""

from typing import Any

from hlofuse.analysis.convolution import window_dimensions
from hlofuse.analysis.indexing_evaluation import code_duplication as duplication
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import Knob
from hlofuse.rules.gpu_fusible import is_physically_transposing
from hlofuse.rules.gpu_instruction_fusion.candidate import GpuPair
from hlofuse.rules.instruction_fusion.duplication import recomputation
from hlofuse.rules.priority_fusion.budget import over_budget
from hlofuse.rules.verdict import Verdict, condition, requirement

ALLOWED_CODE_DUPLICATION = Knob(
    "gpu-code-duplication-limit",
    15,
    "times",
    "How often an element of a producer may be computed inside a fusion.",
)
MAX_REPEATED = Knob(
    "gpu-heavy-computation",
    10,
    "elements",
    "What reads more elements for one of its result is not computed several times.",
)


@condition("GI001", "The producer is a fusion already", message="the producer is a fusion")
def producer_is_a_fusion(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.producer.opcode == "fusion" else None


@requirement("GI002", "The consumer is a custom fusion", message="the consumer is a custom fusion")
def consumer_is_custom(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.consumer.fusion_kind == "kCustom" else None


@condition(
    "GI003",
    "The consumer would compute an expensive producer several times",
    message="the producer is expensive, and the consumer reuses inputs",
)
def reused_expensive_producer(pair: GpuPair) -> dict[str, Any] | None:
    return recomputation(pair)


@condition(
    "GI004",
    "A reduction would read its input across the grain of memory",
    message="fusing the producer would break read coalescing",
)
def breaks_coalescing(pair: GpuPair) -> dict[str, Any] | None:
    if not pair.state.model.summary(pair.consumer).is_reduction:
        return None
    return {} if is_physically_transposing(pair.producer) else None


@condition(
    "GI005",
    "A long computation would be repeated for each element",
    message="the fusion would create a heavy computation",
    knobs=(MAX_REPEATED,),
)
def creates_heavy_computation(pair: GpuPair) -> dict[str, Any] | None:
    producer, consumer = pair.producer, pair.consumer
    body = list(producer.fused_computation) if producer.opcode == "fusion" else [producer]
    heavy = next((x for x in body if _is_heavy(x, pair)), None)
    if heavy is None:
        return None
    if consumer.opcode != "fusion":
        return {"heavy": heavy.name} if _reads_repeatedly(consumer) else None
    pending = [consumer.fused_computation.parameters[consumer.operands.index(producer)]]
    seen = set(pending)
    while pending:
        inner = pending.pop()
        if _reads_repeatedly(inner):
            return {"heavy": heavy.name, "repeated_by": inner.name}
        new = [u for u in inner.users if u not in seen]
        seen.update(new)
        pending += new
    return None


def over_kernel_budget(pair: GpuPair) -> Verdict | None:
    """`FusionFitsInBudget`, the consumer first."""
    state = pair.state
    return over_budget(pair.consumer, pair.producer, state.model, state.settings, producer_consumer=True)


@condition(
    "GI006",
    "The producer would be computed too often inside the fusion",
    message="the fusion would result in an overly large code duplication",
    knobs=(ALLOWED_CODE_DUPLICATION,),
)
def code_duplication(pair: GpuPair) -> dict[str, Any] | None:
    state = pair.state
    if pair.consumer.opcode != "fusion":
        return None
    limit = state.settings.value(ALLOWED_CODE_DUPLICATION)
    return duplication(state.evaluation(pair.consumer), pair.producer, limit)


def _is_heavy(instruction: Instruction, pair: GpuPair) -> bool:
    """Costly for one element (`IsExpensiveToRepeat`)."""
    limit = pair.state.settings.value(MAX_REPEATED)
    if instruction.opcode == "reduce" and not pair.state.model.summary(instruction).is_reduction:
        results = 1 if instruction.shape.is_tuple else instruction.shape.element_count
        return instruction.operands[0].shape.element_count // max(results, 1) > limit
    if instruction.opcode == "reduce-window":
        window = window_dimensions(instruction.attributes.raw("window"))
        size = 1
        for dimension in window:
            size *= dimension.size
        return size > limit
    return False


def _reads_repeatedly(instruction: Instruction) -> bool:
    """It reads an element of an operand for several of its own (`IfFusedReadsElementsMultipleTimes`)."""
    opcode = instruction.opcode
    if opcode in ("gather", "broadcast"):
        return instruction.shape.element_count > instruction.operands[0].shape.element_count
    if opcode == "reduce-window":
        return any(d.size > d.stride for d in window_dimensions(instruction.attributes.raw("window")))
    return False
