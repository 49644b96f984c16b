"""The rules that look at structure, and what settles a producer once its users have been asked."""

from typing import Any

from hlofuse.cost.tiling.constraints import Refusal
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import essential, outcome, register
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, is_scatter_fusion, may_be_fused
from hlofuse.rules.priority_fusion.candidate import PriorityPair
from hlofuse.rules.verdict import Verdict, condition, requirement


@requirement(
    "PF001",
    "The producer is the result of its computation",
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if pair.producer.is_root else None


@requirement(
    "PF002",
    "The producer is a library call, Triton GEMM or custom call",
    message="the producer is not fusible",
)
def producer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.producer, pair.state.model.release) else {"opcode": pair.producer.opcode}


@requirement("PF003", "The consumer cannot be fused into", message="the consumer is not fusible")
def consumer_not_fusible(pair: PriorityPair) -> dict[str, Any] | None:
    return None if may_be_fused(pair.consumer, pair.state.model.release) else {"opcode": pair.consumer.opcode}


@condition("PF004", "The consumer is a bitcast", message="not fusing into a single bitcast as consumer")
def consumer_is_bitcast(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_fusible_bitcast(pair.consumer, pair.state.model.release) else None


# Rules that keep reductions where their emitter can handle them.


@condition("PF008", "Both contain a reduce", message="both the producer and the consumer contain a reduce")
def both_reduce(pair: PriorityPair) -> dict[str, Any] | None:
    of = pair.structure
    return {} if of.producer.significant_reduce and of.consumer.significant_reduce else None


@condition(
    "PF009",
    "A reduction would become a plain loop",
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


@requirement("PF005", "The producer is a scatter", message="do not fuse into the output of scatter")
def producer_is_scatter(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_scatter_fusion(pair.producer) else None


@requirement(
    "PF006",
    "The producer computes the array that a scatter updates",
    message="do not fuse into the in-place operand of scatter",
)
def producer_is_scattered_into(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if updated_operand(pair.consumer) is pair.producer else None


@requirement(
    "PF007",
    "The producer reads the array that a scatter updates",
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

UNSUPPORTED = essential("PF020", "Triton does not support the operation", message="Unsupported …")
NOT_TILED = essential(
    "PF021",
    "The Triton kernel cannot be tiled",
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


# What settles a producer, and why it is fused.

NO_USERS = outcome("PF030", "The producer has no users", message="No users to fuse")
ONLY_BITCASTS = outcome(
    "PF031", "Only bitcasts use the producer", message="not fusing because there are only bitcast users"
)
PAYS = outcome("PF040", "Fusing the producer into all its users saves time", allows=True)
BITCAST_FIRST = outcome("PF041", "Bitcasts are fused first", allows=True)
SMALL_CONSTANT = outcome("PF042", "Scalar constants become part of the code", allows=True)


# The verdict of the cost model: no rule forbids the fusion, but it would not pay.
#
# XLA gives no words for it: such a producer has a priority below zero and never enters the queue.

DOES_NOT_PAY = register("PF032", "Fusing the producer into all its users would cost time", estimated=True)
