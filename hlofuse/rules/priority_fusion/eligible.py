"""Rules about one of the two alone: what PriorityFusion never fuses."""

from typing import Any

from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused
from hlofuse.rules.priority_fusion.candidate import PriorityPair
from hlofuse.rules.verdict import condition, requirement

_FILE = "xla/backends/gpu/transforms/priority_fusion.cc"
_CAN_FUSE = f"{_FILE}: PriorityFusionQueue::CanFuse"
_LIBRARY = (
    "Matmuls, convolutions, sorts, FFTs, other library or custom calls, control flow, collectives and"
    " operations with side effects are separate kernels, or several."
)


@requirement(
    code="PF001",
    title="The producer is the result of its computation",
    condition="The producer is the root of its computation and has other users.",
    why="Its value leaves the computation, so it has to be written anyway.",
    mirrors=_CAN_FUSE,
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if pair.producer.is_root else None


@requirement(
    code="PF002",
    title="The producer is a library call, Triton GEMM or custom call",
    condition="The producer is not an elementwise operation, data movement, reduce, reduce-window, scatter,"
    " constant, or a fusion of those.",
    why=_LIBRARY,
    advice="A custom fusion (Triton GEMM, cuDNN) fuses its epilogue before this pass: see the passes that"
    " created it.",
    mirrors=f"{_FILE}: IsFusible",
    message="the producer is not fusible",
)
def producer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.producer, pair.state.model.release) else {"opcode": pair.producer.opcode}


@requirement(
    code="PF003",
    title="The consumer cannot be fused into",
    condition="The consumer is not an elementwise operation, data movement, reduce, reduce-window, scatter,"
    " constant, or a fusion of those.",
    why=_LIBRARY + " They read complete arrays from memory. So do the result tuple and loops.",
    advice="A value that is returned, or passed to a library call, has to be in memory. One such user is"
    " enough: XLA fuses a producer into all of its users or none.",
    mirrors=f"{_FILE}: IsFusible",
    message="the consumer is not fusible",
)
def consumer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.consumer, pair.state.model.release) else {"opcode": pair.consumer.opcode}


@condition(
    code="PF004",
    title="The consumer is a bitcast",
    condition="The consumer is a bitcast outside a fusion.",
    why="A bitcast needs no kernel. XLA fuses bitcasts into their users first, and then the producer.",
    mirrors=_CAN_FUSE,
    message="not fusing into a single bitcast as consumer",
)
def consumer_is_bitcast(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_fusible_bitcast(pair.consumer, pair.state.model.release) else None
