"""Rules about fusing across the output and about computing a producer more than once."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.verdict import condition, requirement

_SHOULD_FUSE = "xla/service/instruction_fusion.cc: InstructionFusion::ShouldFuse"


def is_always_duplicable(instruction: Instruction) -> bool:
    """Broadcasts and widening converts: a copy reads less than the result (`IsAlwaysDuplicable`)."""
    if instruction.opcode == "broadcast":
        return True
    return (
        instruction.opcode == "convert"
        and instruction.operands[0].shape.byte_size < instruction.shape.byte_size
    )


def recomputation(pair: CandidatePair) -> dict[str, Any] | None:
    """An expensive producer whose elements the consumer reads more than once, in figures; else None.

    Which targets ask it, and of what, is theirs to say.
    """
    producer, state = pair.producer, pair.state
    if not state.is_expensive(producer) or producer not in state.reused.of(pair.consumer):
        return None
    return {
        "producer_elements": producer.shape.element_count,
        "consumer_elements": pair.consumer.shape.element_count,
    }


def _would_duplicate(pair: CandidatePair) -> bool:
    """The producer has a user besides the consumer (`FusionWouldDuplicate`)."""
    users = pair.producer.users
    return not (len(users) == 1 and users[0] is pair.consumer)


@requirement(
    code="IF003",
    title="The producer is the computation's result",
    condition="The producer is the root of its computation.",
    why="The result has to be written to memory anyway; fusing it into a user would compute it twice.",
    advice="If the caller does not need the value, remove it from the jitted function's outputs.",
    lasting=True,
    mirrors=_SHOULD_FUSE,
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.producer.is_root else None


@condition(
    code="IF004",
    title="An expensive producer would be computed more than once",
    condition="An expensive producer (exp, log, tanh, division, reduce, gather…) has another user than this"
    " consumer. Broadcasts and widening converts can always be duplicated.",
    why="The producer stays for its other users, so a fused duplicate is extra work. For an expensive"
    " operation the saved memory traffic does not pay for it.",
    advice="Give the producer a single consumer: let the other users read the fused result, or use a cheaper"
    " form (multiply by a reciprocal instead of dividing). Returning an intermediate for logging is a common"
    " cause of a second user.",
    mirrors=_SHOULD_FUSE,
    message="expensive producer would be duplicated",
)
def expensive_would_be_duplicated(pair: CandidatePair) -> dict[str, Any] | None:
    if (
        not pair.state.may_duplicate
        or not _would_duplicate(pair)
        or not pair.state.is_expensive(pair.producer)
    ):
        return None
    if is_always_duplicable(pair.producer):
        return None
    return {"producer_users": len(pair.producer.users)}


@condition(
    code="IF005",
    title="This run of the pass must not duplicate work",
    condition="The producer has another user than this consumer, in a run with may_duplicate=false."
    " Broadcasts and widening converts can always be duplicated.",
    why="On GPU a first run fuses only what costs no extra work; the second run may duplicate. On CPU the run"
    " before multi-output fusion leaves shared producers to that pass.",
    advice="On CPU leave xla_cpu_use_multi_output_fusion off, and the producer can be duplicated. Otherwise"
    " give the producer a single consumer.",
    mirrors=_SHOULD_FUSE,
    message="fusion pass cannot duplicate",
)
def pass_cannot_duplicate(pair: CandidatePair) -> dict[str, Any] | None:
    if pair.state.may_duplicate or not _would_duplicate(pair) or is_always_duplicable(pair.producer):
        return None
    return {"producer_users": len(pair.producer.users)}
