"""Rules of the fusion driver all targets share (`xla/service/instruction_fusion.cc`): codes IF…"""

from dataclasses import dataclass, field

from hlofuse.analysis.components import depends_on
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.in_place import InPlacePair, ReusedOperands, follow_tuples, in_place_pairs
from hlofuse.analysis.indexing_evaluation import IndexingEvaluation
from hlofuse.ir import Instruction, Instructions, Predicate, reach
from hlofuse.releases import Release
from .catalogue import essential, outcome, register
from .settings import Settings
from .verdict import Answer, Decision, Verdict, condition, requirement


@dataclass(slots=True)
class FusionState:
    """State of a run of the pass, in addition to the graph."""

    may_duplicate: bool
    release: Release
    settings: Settings
    is_expensive: Predicate
    reused: ReusedOperands = field(default_factory=ReusedOperands)
    skipped: set[Instruction] = field(default_factory=set)  # Consumers the target leaves alone altogether
    ends: set[Instruction] = field(default_factory=set)
    """On a TPU, the last instruction of each product's kernel."""
    evaluations: dict[Instruction, IndexingEvaluation] = field(default_factory=dict)
    uses: dict[Instruction, int] = field(default_factory=dict)
    """Uses of producers, until one of their users is fused."""

    def evaluation(self, fusion: Instruction) -> IndexingEvaluation:
        """Emission counts of a fusion; made when first asked for, then kept up to date by the pass."""
        found = self.evaluations.get(fusion)
        if found is None:
            found = self.evaluations[fusion] = IndexingEvaluation(fusion)
        return found


@dataclass(slots=True)
class CandidatePair:
    """The question: `producer` is operand `operand_index` of `consumer`."""

    producer: Instruction
    consumer: Instruction
    operand_index: int
    state: FusionState


# Rules that the driver itself applies, before and after asking those of a target.

OPERAND_NOT_FUSIBLE = essential(
    "IF001", "The operand is not fusible", lasting=True, message="Operand is not fusible"
)
CANNOT_BE_DUPLICATED = register(
    "IF002",
    "The producer cannot be fused into all of its users, and duplicating it would read more memory",
    lasting=True,
    message="operand can not be duplicated",
)
NOTHING_AGAINST = outcome("IF030", "No rule forbids it", allows=True)


# Rules about fusing across the output and about computing a producer more than once.
def is_always_duplicable(instruction: Instruction) -> bool:
    """Broadcasts and widening converts: a copy reads less than the result (`IsAlwaysDuplicable`)."""
    if instruction.is_broadcast:
        return True
    return instruction.opcode == "convert" and instruction.operand.byte_size < instruction.byte_size


def recomputation(pair: CandidatePair) -> Answer:
    """An expensive producer whose elements the consumer reads more than once, in figures; else None."""
    producer, state = pair.producer, pair.state
    if not state.is_expensive(producer) or producer not in state.reused.of(pair.consumer):
        return None
    return {
        "producer_elements": producer.element_count,
        "consumer_elements": pair.consumer.element_count,
    }


def _would_duplicate(pair: CandidatePair) -> bool:
    """True if the producer has another user than the consumer (`FusionWouldDuplicate`)."""
    users = pair.producer.users
    return not (len(users) == 1 and users[0] is pair.consumer)


@requirement(
    "IF003",
    "The producer is the computation's result",
    lasting=True,
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: CandidatePair) -> bool:
    return pair.producer.is_root


@condition(
    "IF004",
    "An expensive producer would be computed more than once",
    message="expensive producer would be duplicated",
)
def expensive_would_be_duplicated(pair: CandidatePair) -> Answer:
    if (
        not pair.state.may_duplicate
        or not _would_duplicate(pair)
        or not pair.state.is_expensive(pair.producer)
    ):
        return None
    if is_always_duplicable(pair.producer):
        return None
    return {"producer_users": pair.producer.user_count}


@condition("IF005", "This run of the pass must not duplicate work", message="fusion pass cannot duplicate")
def pass_cannot_duplicate(pair: CandidatePair) -> Answer:
    if pair.state.may_duplicate or not _would_duplicate(pair) or is_always_duplicable(pair.producer):
        return None
    return {"producer_users": pair.producer.user_count}


# The in-place rule: a consumer that overwrites an operand must not be given a stale or clobbered value. Where
# the producer slices the buffer, exactly the elements may be read that are then overwritten.

SLICE_SHAPE = essential(
    "IF014",
    "The shapes of slice and update differ",
    message="Slice op has a different shape than the update shape of the dus op, bailing.",
)
SLICE_INDEX = essential(
    "IF015", "The slice and the update start at different positions", message="DUS and slice index mismatch"
)
SLICE_OTHER_USE = essential(
    "IF016",
    "Another non-elementwise operation of the consumer reads the slice",
    message="Fusing slice into DUS will also fuse another non-elementwise op with shared operand as DUS.",
)
DYNAMIC_SLICE_SHAPE = essential(
    "IF017",
    "The shapes of dynamic-slice and update differ",
    message="Dynamic slice op has a different shape than the update shape of the dus op, bailing.",
)
DYNAMIC_SLICE_INDEX = essential(
    "IF018",
    "The indices of dynamic-slice and update differ",
    message="DUS and DS index mismatch",
)
DYNAMIC_SLICE_OTHER_USE = essential(
    "IF019",
    "Another non-elementwise operation of the consumer reads the dynamic-slice",
    message="Fusing DS into DUS will also fuse another non-elementwise op with shared operand as DUS.",
)


def _slice_of_update(
    producer: Instruction, consumer: Instruction, slice_: Instruction, update: Instruction
) -> Decision:
    """`slice_` is the slice in the producer, `update` the dynamic-update-slice in the consumer."""
    is_static = slice_.is_slice
    if slice_.shape.key != update.second.shape.key:
        figures = {"slice_shape": str(slice_.shape), "update_shape": str(update.second.shape)}
        return Verdict(SLICE_SHAPE if is_static else DYNAMIC_SLICE_SHAPE, figures)
    for dimension in range(update.rank):
        b = _seen_through(consumer, update.operands[2 + dimension])
        index = _integer(b)
        if is_static:
            taken = slice_.attributes["slice"][dimension]
            if index is None or index != taken.start or taken.stride != 1:
                found = {"dimension": dimension, "slice_start": taken.start, "update_start": index}
                return Verdict(SLICE_INDEX, found)
            continue
        a = _seen_through(producer, slice_.operands[1 + dimension])
        if _integer(a) != index or (index is None and a is not b):
            found = {"dimension": dimension, "slice_start": a.name, "update_start": b.name}
            return Verdict(DYNAMIC_SLICE_INDEX, found)
    if consumer.is_fusion and not _safe(producer, consumer, update):
        return Verdict(SLICE_OTHER_USE if is_static else DYNAMIC_SLICE_OTHER_USE)
    return None


def _seen_through(outer: Instruction, operand: Instruction) -> Instruction:
    if outer.is_fusion and operand.is_parameter:
        return outer.operands[operand.parameter_number]
    return operand


def _integer(instruction: Instruction) -> int | None:
    if not instruction.is_constant:
        return None
    value = instruction.literal.scalar
    return int(value) if isinstance(value, int) else None


def _safe(producer: Instruction, consumer: Instruction, update: Instruction) -> bool:
    """Nothing but elementwise operations and the update follows the producer's value inside the consumer."""
    body = consumer.fused_computation
    starts = [body.parameters[k] for k, o in enumerate(consumer.operands) if o is producer]
    after = reach(starts, lambda x: x.users)
    return all(x is update or x.is_parameter or is_elementwise(x) for x in after)


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
    "The producer fusion has more than one non-elementwise operation",
    message="Producer fusion has multiple non-elementwise ops, bailing.",
)
CONSUMER_CONFLICT = essential(
    "IF012",
    "Non-elementwise operations of the consumer read what it overwrites",
    message="Non-elementwise ops in consumer lead to inplace conflict after fusion.",
)
SEVERAL_UPDATES = essential(
    "IF013", "The consumer has more than one dynamic-update-slice", message="multiple dus ops, bailing."
)
UNRECOGNIZED = essential(
    "IF020",
    "XLA does not analyze how the producer reads the overwritten buffer",
    message="unrecognized inplace update non-elementwise output pair",
)


def is_non_elementwise(instruction: Instruction) -> bool:
    """Neither elementwise nor a mere view or input."""
    return instruction.opcode not in ("fusion", "bitcast", "parameter") and not is_elementwise(instruction)


def extract(instruction: Instruction, wanted: Predicate) -> Instructions:
    """The instruction itself if wanted, else those wanted inside it (`ExtractInstructions`)."""
    if wanted(instruction):
        return [instruction]
    return [x for x in instruction.fused_computation if wanted(x)] if instruction.is_fusion else []


def may_fuse_into_in_place(pair: CandidatePair) -> Decision:
    """Refuse where fusing could change what the in-place consumer reads; the first pair concerned decides."""
    producer, consumer = pair.producer, pair.consumer
    for in_place in in_place_pairs(consumer, pair.state.release):
        buffer = consumer.operands[in_place.operand_number]
        if any(o is buffer and k != in_place.operand_number for k, o in enumerate(consumer.operands)):
            return Verdict(SAME_VALUE_TWICE, {"buffer": buffer.name})
        if buffer is producer or buffer in producer.operands:
            return _decide(producer, consumer, in_place)
    return None


def _decide(producer: Instruction, consumer: Instruction, in_place: InPlacePair) -> Decision:
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
    if found[0].opcode in ("slice", "dynamic-slice"):
        return _slice_of_update(producer, consumer, found[0], updates[0])
    return Verdict(UNRECOGNIZED, {"non_elementwise": found[0].name})


def _elementwise_producer(producer: Instruction, consumer: Instruction, in_place: InPlacePair) -> Decision:
    if not consumer.is_fusion:
        return None
    body = consumer.fused_computation
    root, _ = follow_tuples(body.root, in_place.output_index)
    others = extract(consumer, lambda x: x is not root and is_non_elementwise(x))
    if not others:
        return None
    parameter = body.parameters[consumer.operands.index(producer)]
    conflict = next((x for x in others if x.computation is body and depends_on(x, parameter)), None)
    return None if conflict is None else Verdict(CONSUMER_CONFLICT, {"conflict": conflict.name})
