"""Rules for pairs of which one is a Triton fusion already: the other must be something Triton can emit."""

from __future__ import annotations

from hlofuse.cost.tiling.refusals import Refusal
from hlofuse.rules.catalogue import Rule, register
from hlofuse.rules.priority_fusion.question import PriorityPair
from hlofuse.rules.verdict import Verdict

UNSUPPORTED = register(
    Rule(
        code="PF020",
        title="Triton has no code for the operation",
        asks="Is an operation of producer or consumer one that XLA's Triton emitter does not support, or "
        "not for "
        "this type?",
        why="The neighbour is a Triton fusion (a softmax, a normalisation), which only what Triton can emit "
        "may join. The message says what is unsupported.",
        advice="Gathers, dynamic slices, reductions over several dimensions, low pads, complex numbers "
        "and some "
        "functions (logistic, sign, is-finite) stay outside. Where they stand between two supported "
        "operations, "
        "move them to the end of the chain.",
        mirrors="xla/backends/gpu/codegen/triton/support.cc: IsTritonSupportedInstruction",
        message="Unsupported …",
        essential=True,
    )
)
NOT_TILED = register(
    Rule(
        code="PF021",
        title="The Triton kernel cannot be cut into tiles",
        asks="Is there no tiling of the result for which every operation inside works on a rectangular tile "
        "within the limits?",
        why="A Triton kernel computes a tile of its result from tiles of its inputs. Some combinations, "
        "such as a "
        "reshape that splits a reduced dimension, have no rectangular tile. The message says where it fails.",
        advice="Reshape before the whole chain instead of inside it; pad to multiples of 64 before a "
        "concatenate.",
        mirrors="xla/service/gpu/model/gpu_indexing_performance_model.cc: "
        "GpuPerformanceModelWithIndexingAnalysis::TryFindBestTilingForFusion",
        message="Fusion can not be tiled with SymbolicTileAnalysis: …",
        essential=True,
    )
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
