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

_MIRRORS = "xla/service/instruction_fusion.cc: InstructionFusion::ShouldFuseInPlaceOp"
_WHY = (
    "The consumer overwrites one of its operands. In one kernel another read of that buffer can come before"
    " or after the write, so its value would depend on the order of elements."
)

SAME_VALUE_TWICE = essential(
    code="IF010",
    title="The overwritten operand is also another operand of the consumer",
    condition="An in-place consumer (dynamic-update-slice, scatter, a fusion of one) has the value it"
    " overwrites also as another operand.",
    why=_WHY,
    advice="Update from a copy or another array: x.at[i].set(f(x)) reads and writes x in one kernel. Compute"
    " f(x) for the updated slice only.",
    mirrors=_MIRRORS,
    message="The consumer is an in-place operation that has an additional operand that has the same "
    "value as the in-place buffer",
)
SEVERAL_NON_ELEMENTWISE = essential(
    code="IF011",
    title="The producer fusion has more than one non-elementwise operation",
    condition="A producer that reads (or is) the overwritten buffer has two or more operations that are"
    " neither elementwise nor bitcasts.",
    why=_WHY + " XLA only analyzes a single such operation.",
    advice="Split the producer: let one of its operations be used elsewhere or materialized first.",
    mirrors=_MIRRORS,
    message="Producer fusion has multiple non-elementwise ops, bailing.",
)
CONSUMER_CONFLICT = essential(
    code="IF012",
    title="Non-elementwise operations of the consumer read what it overwrites",
    condition="Inside the consumer fusion, the producer's value reaches an operation that is not elementwise"
    " and not the in-place root.",
    why=_WHY,
    advice="Compute that other operation (a reduce, slice or broadcast) before the update, as a separate"
    " value.",
    mirrors=_MIRRORS,
    message="Non-elementwise ops in consumer lead to inplace conflict after fusion.",
    history="jaxlib 0.4.35 traces in-place pairs through fewer bitcasts, so it finds fewer conflicts.",
)
SEVERAL_UPDATES = essential(
    code="IF013",
    title="The consumer has more than one dynamic-update-slice",
    condition="A consumer that overwrites the producer's buffer has two or more dynamic-update-slices.",
    why=_WHY + " XLA does not determine which of the two updates the producer may precede.",
    advice="Update once with a larger slice, or write the result of the first update to memory.",
    mirrors=_MIRRORS,
    message="multiple dus ops, bailing.",
)
UNRECOGNIZED = essential(
    code="IF020",
    title="XLA does not analyze how the producer reads the overwritten buffer",
    condition="The producer's one non-elementwise operation is neither a slice nor a dynamic-slice.",
    why=_WHY + " Only a slice at the position of the update is known to be safe.",
    advice="Read the part to be updated with a slice of the same start and size as the update.",
    mirrors=_MIRRORS,
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
