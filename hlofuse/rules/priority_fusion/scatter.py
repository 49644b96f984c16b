"""Rules about scatters, which write their result over an operand."""

from __future__ import annotations

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.gpu_fusible import is_scatter_fusion
from hlofuse.rules.priority_fusion.question import PriorityPair
from hlofuse.rules.verdict import asks

_MIRRORS = "xla/service/gpu/gpu_fusible.cc: CanEmitInputFusedScatter"


@asks(
    Rule(
        code="PF005",
        title="The producer is a scatter",
        asks="Is the producer a scatter, or a fusion whose result is one?",
        why="A scatter's threads run over the updates, not over the result: no element of the result is "
        "ready "
        "before the whole kernel is.",
        advice="Apply what follows to the updates instead, where that means the same.",
        mirrors=_MIRRORS,
        message="do not fuse into the output of scatter",
        essential=True,
    )
)
def producer_is_scatter(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if is_scatter_fusion(pair.producer) else None


@asks(
    Rule(
        code="PF006",
        title="The producer makes the array a scatter updates",
        asks="Is the consumer a scatter and the producer the array it updates in place?",
        why="The array has to be in memory for the updates to be added to it; a kernel that only visits the "
        "updated elements could not make the rest.",
        advice="Nothing to do. Zeros that are scattered into stay a kernel of their own.",
        mirrors=_MIRRORS,
        message="do not fuse into the in-place operand of scatter",
        essential=True,
    )
)
def producer_is_scattered_into(pair: PriorityPair) -> dict[str, Any] | None:
    return {} if updated_operand(pair.consumer) is pair.producer else None


@asks(
    Rule(
        code="PF007",
        title="The producer reads the array a scatter updates",
        asks="Is the consumer a scatter, and the array it updates in place an operand of the producer as "
        "well?",
        why="Some threads would read elements that others have overwritten already.",
        advice="Compute what goes into the updates or indices from another array.",
        mirrors=_MIRRORS,
        message="Producer uses the in-place operand of a scatter",
        essential=True,
    )
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
