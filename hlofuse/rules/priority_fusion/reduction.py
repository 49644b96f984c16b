"""Rules that keep reductions where their emitter can handle them."""

from typing import Any

from hlofuse.cost.tiling.constraints import Refusal
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import essential
from hlofuse.rules.gpu_fusible import is_scatter_fusion
from hlofuse.rules.priority_fusion.candidate import PriorityPair
from hlofuse.rules.verdict import Verdict, condition, requirement

_MIRRORS = "xla/backends/gpu/transforms/priority_fusion.cc: PriorityFusionQueue::CanFuse"


@condition(
    code="PF008",
    title="Both contain a reduce",
    condition="Does each of the two contain a reduce that folds 16 elements or more into one?",
    why="The inner reduce would be computed anew by every thread that needs it. XLA's cost model does "
    "not understand such a pair, so it is not tried.",
    advice="Two reductions that follow each other are two kernels. Where both read the same array "
    "(mean and variance from sums), write them side by side: then they become one kernel.",
    mirrors=_MIRRORS,
    message="both the producer and the consumer contain a reduce",
)
def both_reduce(pair: PriorityPair) -> dict[str, Any] | None:
    of = pair.structure
    return {} if of.producer.significant_reduce and of.consumer.significant_reduce else None


@condition(
    code="PF009",
    title="A reduction would become a plain loop",
    condition="Is the producer emitted as a parallel reduction, and would the two together be emitted as "
    "a loop?",
    why="In a loop every thread computes a whole sum on its own. A reduction keeps its parallel emitter "
    "only while nothing but operations on its few results, of the same shape, follows.",
    advice="Operations with one operand may follow a reduction inside its kernel: a cast, sqrt, exp. A "
    "scale, a bias or an epsilon may not: scale the summands and start the sum from the constant. Over the "
    "last axis Triton takes a whole normalization (softmax, layer norm) as one kernel.",
    mirrors=_MIRRORS,
    message="fusion into output of a reduce fusion would create a loop fusion",
)
def reduction_becomes_loop(pair: PriorityPair) -> dict[str, Any] | None:
    model = pair.state.model
    alone = pair.structure.producer.launch or model.launch(pair.producer)
    if alone.kind != "reduction":
        return None
    launch = model.pair_launch(pair.producer, pair.consumer, pair.structure)
    return {} if launch.kind == "loop" else None


# Rules about scatters, which write their result over an operand.

_MIRRORS_SCATTER = "xla/service/gpu/gpu_fusible.cc: CanEmitInputFusedScatter"


@requirement(
    code="PF005",
    title="The producer is a scatter",
    condition="Is the producer a scatter, or a fusion whose result is one?",
    why="A scatter's threads run over the updates, not over the result: no element of the result is "
    "ready before the whole kernel is.",
    advice="Apply what follows to the updates instead, where that means the same.",
    mirrors=_MIRRORS_SCATTER,
    message="do not fuse into the output of scatter",
)
def producer_is_scatter(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_scatter_fusion(pair.producer) else None


@requirement(
    code="PF006",
    title="The producer makes the array a scatter updates",
    condition="Is the consumer a scatter and the producer the array it updates in place?",
    why="The array has to be in memory for the updates to be added to it; a kernel that only visits the "
    "updated elements could not make the rest.",
    mirrors=_MIRRORS_SCATTER,
    message="do not fuse into the in-place operand of scatter",
)
def producer_is_scattered_into(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if updated_operand(pair.consumer) is pair.producer else None


@requirement(
    code="PF007",
    title="The producer reads the array a scatter updates",
    condition="Is the consumer a scatter, and the array it updates in place an operand of the producer "
    "as well?",
    why="Some threads would read elements that others have overwritten already.",
    advice="Compute what goes into the updates or indices from another array.",
    mirrors=_MIRRORS_SCATTER,
    message="Producer uses the in-place operand of a scatter",
)
def producer_reads_updated(pair: PriorityPair) -> dict[str, Any] | None:
    updated = updated_operand(pair.consumer)
    return {"array": updated.name} if updated is not None and updated in pair.producer.operands else None


def updated_operand(consumer: Instruction) -> Instruction | None:
    """The array that a scatter, or a fusion around one, updates in place; None for anything else."""
    if not is_scatter_fusion(consumer):
        return None
    if consumer.opcode != "fusion":
        return consumer.operands[0]
    return consumer.operands[consumer.fused_root.operands[0].parameter_number]


# Rules for pairs of which one is a Triton fusion already: the other must be something Triton can emit.

UNSUPPORTED = essential(
    code="PF020",
    title="Triton has no code for the operation",
    condition="Is an operation of producer or consumer one that XLA's Triton emitter does not support, "
    "or not for this type?",
    why="The neighbour is a Triton fusion (a softmax, a normalisation), which only what Triton can emit "
    "may join. The message says what is unsupported.",
    advice="Gathers, dynamic slices, reductions over several dimensions, low pads, complex numbers and "
    "some functions (logistic, sign, is-finite) stay outside. Where they stand between two supported "
    "operations, move them to the end of the chain.",
    mirrors="xla/backends/gpu/codegen/triton/support.cc: IsTritonSupportedInstruction",
    message="Unsupported …",
)
NOT_TILED = essential(
    code="PF021",
    title="The Triton kernel cannot be cut into tiles",
    condition="Is there no tiling of the result for which every operation inside works on a rectangular "
    "tile within the limits?",
    why="A Triton kernel computes a tile of its result from tiles of its inputs. Some combinations, "
    "such as a "
    "reshape that splits a reduced dimension, have no rectangular tile. The message says where it fails.",
    advice="Reshape before the whole chain instead of inside it; pad to multiples of 64 before a "
    "concatenate.",
    mirrors="xla/service/gpu/model/gpu_indexing_performance_model.cc: "
    "GpuPerformanceModelWithIndexingAnalysis::TryFindBestTilingForFusion",
    message="Fusion can not be tiled with SymbolicTileAnalysis: …",
)


def producer_unsupported_by_triton(pair: PriorityPair) -> Verdict | None:
    reason = pair.state.triton.refusal(pair.producer)
    return None if reason is None else Verdict(UNSUPPORTED, {"of": "producer"}, reason)


def consumer_unsupported_by_triton(pair: PriorityPair) -> Verdict | None:
    reason = pair.state.triton.refusal(pair.consumer)
    return None if reason is None else Verdict(UNSUPPORTED, {"of": "consumer"}, reason)


def not_tiled(pair: PriorityPair) -> Verdict | None:
    tiling = pair.state.tiled(pair.producer, pair.consumer)
    return Verdict(NOT_TILED, {}, tiling) if isinstance(tiling, Refusal) else None
