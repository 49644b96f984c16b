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
    condition="Each of the two contains a reduce that combines 16 elements or more into one.",
    why="Every thread that needs the inner reduce would compute it again. XLA's cost model does not cover"
    " such a pair, so XLA does not try it.",
    advice="Two reductions in sequence are two kernels. If both read the same array (mean and variance from"
    " sums), make them independent: then they become one kernel.",
    mirrors=_MIRRORS,
    message="both the producer and the consumer contain a reduce",
)
def both_reduce(pair: PriorityPair) -> dict[str, Any] | None:
    of = pair.structure
    return {} if of.producer.significant_reduce and of.consumer.significant_reduce else None


@condition(
    code="PF009",
    title="A reduction would become a plain loop",
    condition="The producer is emitted as a parallel reduction, and the two together would be emitted as a"
    " loop.",
    why="In a loop, every thread computes a whole sum. A reduction keeps its parallel emitter only if"
    " operations on its few results, of the same shape, follow.",
    advice="Operations with one operand can follow a reduction inside its kernel: a cast, sqrt, exp. For a"
    " scale, bias or epsilon, scale the summands and start the sum from the constant. Over the last axis"
    " Triton computes a whole normalization (softmax, layer norm) as one kernel.",
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
    condition="The producer is a scatter, or a fusion whose result is one.",
    why="A scatter's threads run over the updates, not over the result: no element of the result is ready"
    " before the whole kernel is.",
    advice="Apply the following operations to the updates instead, if that is equivalent.",
    mirrors=_MIRRORS_SCATTER,
    message="do not fuse into the output of scatter",
)
def producer_is_scatter(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_scatter_fusion(pair.producer) else None


@requirement(
    code="PF006",
    title="The producer computes the array that a scatter updates",
    condition="The consumer is a scatter, and the producer is the array it updates in place.",
    why="The array has to be in memory for the updates; a kernel that only visits the updated elements cannot"
    " compute the rest.",
    mirrors=_MIRRORS_SCATTER,
    message="do not fuse into the in-place operand of scatter",
)
def producer_is_scattered_into(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if updated_operand(pair.consumer) is pair.producer else None


@requirement(
    code="PF007",
    title="The producer reads the array that a scatter updates",
    condition="The consumer is a scatter, and the array it updates in place is also an operand of the"
    " producer.",
    why="Some threads would read elements that others have already overwritten.",
    advice="Compute the updates or indices from another array.",
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
    title="Triton does not support the operation",
    condition="XLA's Triton emitter does not support an operation of producer or consumer, or not for its"
    " type.",
    why="The other one is a Triton fusion (a softmax, a normalization), which accepts only operations that"
    " Triton supports. The message names the unsupported one.",
    advice="Gathers, dynamic slices, reductions over several dimensions, low pads, complex numbers and some"
    " functions (logistic, sign, is-finite) are not supported. Move them to the end of the chain.",
    mirrors="xla/backends/gpu/codegen/triton/support.cc: IsTritonSupportedInstruction",
    message="Unsupported …",
)
NOT_TILED = essential(
    code="PF021",
    title="The Triton kernel cannot be tiled",
    condition="No tiling of the result gives every operation inside a rectangular tile within the limits.",
    why="A Triton kernel computes a tile of its result from tiles of its inputs. Some combinations, such as a"
    " reshape that splits a reduced dimension, have no rectangular tile. The message shows where it fails.",
    advice="Reshape before the whole chain instead of inside it; pad to multiples of 64 before a"
    " concatenate.",
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
