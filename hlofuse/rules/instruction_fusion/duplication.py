"""Rules about fusing across the output and about computing a producer more than once."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.verdict import condition, requirement


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
    "IF003",
    "The producer is the computation's result",
    lasting=True,
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: CandidatePair) -> dict[str, Any] | None:
    return {} if pair.producer.is_root else None


@condition(
    "IF004",
    "An expensive producer would be computed more than once",
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
    "IF005", "This run of the pass may not compute anything twice", message="fusion pass cannot duplicate"
)
def pass_cannot_duplicate(pair: CandidatePair) -> dict[str, Any] | None:
    if pair.state.may_duplicate or not _would_duplicate(pair) or is_always_duplicable(pair.producer):
        return None
    return {"producer_users": len(pair.producer.users)}
