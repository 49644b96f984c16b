"""Rules that let an add be done while a matrix-vector product writes its results."""

from __future__ import annotations

from typing import Any

from hlofuse.analysis.cpu_predicates import has_output_fusible_operand, is_output_fusible
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.instruction_fusion.question import CandidatePair
from hlofuse.rules.verdict import asks

_SHOULD_FUSE = "xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ShouldFuse"


@asks(
    Rule(
        code="CPU003",
        title="The add goes into its matrix-vector product",
        asks="Is the consumer an add, and the producer a real dot without batch dimensions whose result "
        "has rank 0 or 1 and is used only here, once?",
        why="XLA:CPU emits small matrix-vector products itself and can add the other operand as it stores "
        "each result. The pair is allowed before any other question is asked, as a kOutput fusion.",
        advice="Nothing to do: y = W @ x + b for vectors is one kernel.",
        mirrors=_SHOULD_FUSE + ", CanBeOutputFused",
        allows=True,
    )
)
def output_fusion(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if is_output_fusible(pair.producer, pair.consumer) else None


@asks(
    Rule(
        code="CPU004",
        title="The add waits for its own matrix-vector product",
        asks="Is the producer an add that can be an output fusion with one of its operands (CPU003)?",
        why="Fused into this consumer it could not go into the dot any more, which saves more.",
        advice="Nothing, unless the consumer matters more: give the dot a second user and the add is free.",
        mirrors=_SHOULD_FUSE + ", CanBeOutputFusedIntoSomeOperand",
        message="Bailing because producer can be output-fused into some operand.",
    )
)
def goes_into_its_dot(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if has_output_fusible_operand(pair.producer) else None
