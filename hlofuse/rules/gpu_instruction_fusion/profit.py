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

_FILE = "xla/service/gpu/transforms/instruction_fusion.cc"
_SHOULD_FUSE = f"{_FILE}: GpuInstructionFusion::ShouldFuseInexpensiveChecks"
_HEAVY = "xla/service/gpu/gpu_fusible.cc: CreatesHeavyComputation"

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
    "Minimum elements read per result for a computation that is not repeated.",
)


@condition(
    code="GI001",
    title="The producer is already a fusion",
    condition="The producer is a fusion.",
    why="This pass fuses single operations; FusionMerger, which follows, merges fusions.",
    advice="See FusionMerger's decision about the pair.",
    mirrors=_SHOULD_FUSE,
    message="the producer is a fusion",
)
def producer_is_a_fusion(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.producer.opcode == "fusion" else None


@requirement(
    code="GI002",
    title="The consumer is a custom fusion",
    condition="The consumer is a kCustom fusion, such as a Triton GEMM.",
    why="The contents of such a fusion were chosen for its own emitter.",
    mirrors=_SHOULD_FUSE,
    message="the consumer is a custom fusion",
)
def consumer_is_custom(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.consumer.fusion_kind == "kCustom" else None


@condition(
    code="GI003",
    title="The consumer would recompute an expensive producer",
    condition="The producer is expensive and the consumer reads its elements more than once (as a broadcast"
    " does). Division, sqrt, rsqrt and exp of f32 and f16 count as cheap.",
    why="Each read inside the kernel computes the element again.",
    advice="Usually fine: the row maximum or sum of a softmax is stored, then broadcast.",
    mirrors=_SHOULD_FUSE + ", IsExpensive; xla/service/instruction_fusion.cc: ReusesOperandElements",
    message="the producer is expensive, and the consumer reuses inputs",
)
def reused_expensive_producer(pair: GpuPair) -> dict[str, Any] | None:
    return recomputation(pair)


@condition(
    code="GI004",
    title="A reduction would read its input uncoalesced",
    condition="The consumer is a parallel reduction, and the producer is a copy or transpose that moves"
    " elements.",
    why="The reduction's threads read neighbouring elements together; through a transpose these are far"
    " apart.",
    advice="Reduce over the other dimension of the array before the transpose.",
    mirrors=_SHOULD_FUSE,
    message="fusing the producer would break read coalescing",
)
def breaks_coalescing(pair: GpuPair) -> dict[str, Any] | None:
    if not pair.state.model.summary(pair.consumer).is_reduction:
        return None
    return {} if is_physically_transposing(pair.producer) else None


@condition(
    code="GI005",
    title="A long computation would be repeated for each element",
    condition="The producer (or an operation inside) reduces or windows more than 10 elements into one in a"
    " plain loop, and the consumer reads elements repeatedly (a broadcast, gather or overlapping window).",
    why="Each repeated read iterates over all those elements again.",
    mirrors=_HEAVY,
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
    code="GI006",
    title="The producer would be computed too often inside the fusion",
    condition="Each element of the producer would be computed more than 15 times, or more than once for a"
    " concatenate, dot, dynamic-update-slice, pad, reduce or reduce-window.",
    why="The emitter computes an element again for each different index.",
    advice="Break the diamond with jax.lax.optimization_barrier around the shared value, or replace "
    "shifted copies of the same array by a convolution or reduce_window.",
    mirrors=f"{_FILE}: GpuInstructionFusion::ShouldFuse; "
    "xla/service/fusion_node_indexing_evaluation.cc: CodeDuplicationTooHigh",
    message="the fusion would result in an overly large code duplication",
    knobs=(ALLOWED_CODE_DUPLICATION,),
    history="PriorityFusion has the same message for PF013.",
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
