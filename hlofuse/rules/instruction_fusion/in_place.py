"""The in-place rule: a consumer that overwrites an operand must not be given a stale or clobbered value.

`may_fuse_into_in_place` walks the consumer's in-place pairs and hands the slices to `in_place_slices`.
"""

from collections.abc import Callable

from hlofuse.analysis.components import Reachability
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.in_place import InPlacePair, follow_tuples, in_place_pairs
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import essential
from hlofuse.rules.instruction_fusion import in_place_slices
from hlofuse.rules.instruction_fusion.candidate import CandidatePair
from hlofuse.rules.verdict import Verdict

SAME_VALUE_TWICE = essential(
    "IF010",
    "The overwritten operand is also another operand of the consumer",
    message=(
        "The consumer is an in-place operation that has an additional operand that has the same "
        "value as the in-place buffer"
    ),
)
SEVERAL_NON_ELEMENTWISE = essential(
    "IF011",
    "The producer fusion holds more than one non-elementwise operation",
    message="Producer fusion has multiple non-elementwise ops, bailing.",
)
CONSUMER_CONFLICT = essential(
    "IF012",
    "Non-elementwise operations of the consumer read what it overwrites",
    message="Non-elementwise ops in consumer lead to inplace conflict after fusion.",
)
SEVERAL_UPDATES = essential(
    "IF013", "The consumer holds more than one dynamic-update-slice", message="multiple dus ops, bailing."
)
UNRECOGNIZED = essential(
    "IF020",
    "The producer reads the overwritten buffer in a way XLA does not analyse",
    message="unrecognized inplace update non-elementwise output pair",
)


def is_non_elementwise(instruction: Instruction) -> bool:
    """Neither elementwise nor a mere view or input."""
    return instruction.opcode not in ("fusion", "bitcast", "parameter") and not is_elementwise(instruction)


def extract(instruction: Instruction, wanted: Callable[[Instruction], bool]) -> list[Instruction]:
    """The instruction itself if wanted, else those wanted inside it (`ExtractInstructions`)."""
    if wanted(instruction):
        return [instruction]
    return [x for x in instruction.fused_computation if wanted(x)] if instruction.opcode == "fusion" else []


def may_fuse_into_in_place(pair: CandidatePair) -> Verdict | None:
    """Refuse where fusing could change what the in-place consumer reads; the first pair concerned decides."""
    producer, consumer = pair.producer, pair.consumer
    for in_place in in_place_pairs(consumer, pair.state.release):
        buffer = consumer.operands[in_place.operand_number]
        if any(o is buffer and k != in_place.operand_number for k, o in enumerate(consumer.operands)):
            return Verdict(SAME_VALUE_TWICE, {"buffer": buffer.name})
        if buffer is producer or buffer in producer.operands:
            return _decide(producer, consumer, in_place)
    return None


def _decide(producer: Instruction, consumer: Instruction, in_place: InPlacePair) -> Verdict | None:
    found = extract(producer, is_non_elementwise)
    if len(found) > 1:
        return Verdict(SEVERAL_NON_ELEMENTWISE, {"non_elementwise": [x.name for x in found]})
    if not found:
        return _elementwise_producer(producer, consumer, in_place)
    updates = extract(consumer, lambda x: x.opcode == "dynamic-update-slice")
    if not updates:
        return None
    if len(updates) > 1:
        return Verdict(SEVERAL_UPDATES, {"updates": [x.name for x in updates]})
    if found[0].opcode == "slice":
        return in_place_slices.slice_matches_update(producer, consumer, found[0], updates[0])
    if found[0].opcode == "dynamic-slice":
        return in_place_slices.dynamic_slice_matches_update(producer, consumer, found[0], updates[0])
    return Verdict(UNRECOGNIZED, {"non_elementwise": found[0].name})


def _elementwise_producer(
    producer: Instruction, consumer: Instruction, in_place: InPlacePair
) -> Verdict | None:
    if consumer.opcode != "fusion":
        return None
    body = consumer.fused_computation
    root, _ = follow_tuples(body.root, in_place.output_index)
    others = extract(consumer, lambda x: x is not root and is_non_elementwise(x))
    if not others:
        return None
    reachability = Reachability(body)
    parameter = body.parameters[consumer.operands.index(producer)]
    conflict = next((x for x in others if x in reachability and reachability.reaches(parameter, x)), None)
    return None if conflict is None else Verdict(CONSUMER_CONFLICT, {"conflict": conflict.name})
