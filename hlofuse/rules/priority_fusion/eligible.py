"""Rules about one of the two alone: what PriorityFusion never fuses."""

from typing import Any

from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused
from hlofuse.rules.priority_fusion.candidate import PriorityPair
from hlofuse.rules.verdict import condition, requirement

_FILE = "xla/backends/gpu/transforms/priority_fusion.cc"
_CAN_FUSE = f"{_FILE}: PriorityFusionQueue::CanFuse"
_LIBRARY = (
    "Matrix products, convolutions, sorts, FFTs and other library or custom calls, control flow, collectives "
    "and operations with side effects are kernels (or more than kernels) of their own."
)


@requirement(
    code="PF001",
    title="The producer is the result of its computation",
    condition="Is the producer the root of its computation, with users besides?",
    why="Its value leaves the computation, so it has to be written anyway.",
    mirrors=_CAN_FUSE,
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if pair.producer.is_root else None


@requirement(
    code="PF002",
    title="The producer has no code that could be inlined",
    condition="Is the producer something else than an element-wise operation, a data movement, a reduce, "
    "a reduce-window, a scatter, a constant, or a fusion of those?",
    why=_LIBRARY,
    advice="A custom fusion (a Triton matrix product, cuDNN) takes its "
    "epilogue in before this pass: look at the passes that made it.",
    mirrors=f"{_FILE}: IsFusible",
    message="the producer is not fusible",
)
def producer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.producer, pair.state.model.release) else {"opcode": pair.producer.opcode}


@requirement(
    code="PF003",
    title="The consumer takes nothing in",
    condition="Is the consumer something else than an element-wise operation, a data movement, a reduce, "
    "a reduce-window, a scatter, a constant, or a fusion of those?",
    why=_LIBRARY + " They read finished arrays from memory. So do the tuple of results and loops.",
    advice="A result that is returned, or handed to a library call, has to be in memory. One such user "
    "is enough: XLA fuses a producer into all of its users or into none.",
    mirrors=f"{_FILE}: IsFusible",
    message="the consumer is not fusible",
)
def consumer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.consumer, pair.state.model.release) else {"opcode": pair.consumer.opcode}


@condition(
    code="PF004",
    title="The consumer is a bitcast",
    condition="Is the consumer a bitcast that is not in a fusion yet?",
    why="A bitcast needs no kernel. XLA fuses bitcasts into their users first, and then the producer.",
    mirrors=_CAN_FUSE,
    message="not fusing into a single bitcast as consumer",
)
def consumer_is_bitcast(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_fusible_bitcast(pair.consumer, pair.state.model.release) else None
