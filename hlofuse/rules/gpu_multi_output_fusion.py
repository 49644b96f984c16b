"""Rules of GPU multi-output fusion (`xla/backends/gpu/transforms/multi_output_fusion.cc`): codes GM….
`SIBLING_RULES`, `PRODUCER_RULES` and `CONSUMER_RULES` are the orders in which it asks."""

from dataclasses import dataclass

from hlofuse.analysis.components import MergedOrder
from hlofuse.analysis.elementwise import is_elementwise, is_fusible
from hlofuse.analysis.in_place import in_place_pairs
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import microseconds
from hlofuse.ir.graph import Instruction
from .catalogue import essential, outcome, register
from .fusion_heroes import shapes_differ
from .gpu_fusible import has_tiled_transpose, is_loop_fusible_producer, is_physically_transposing
from .priority_fusion.conditions import MAX_IR_SIZE, over_budget
from .settings import Settings
from .verdict import Answer, Decision, Verdict, condition, requirement


@dataclass(slots=True)
class MultiOutputState:
    """State of a run of the pass, in addition to the graph."""

    model: KernelModel
    settings: Settings
    order: MergedOrder


@dataclass(slots=True)
class SiblingPair:
    """A candidate: `other` merged into `fusion`, both reading `parent`."""

    fusion: Instruction
    other: Instruction
    parent: Instruction
    state: MultiOutputState


@dataclass(slots=True)
class LoneProducer:
    """A candidate: `producer` as a further result of any consumer's kernel."""

    producer: Instruction
    state: MultiOutputState


@dataclass(slots=True)
class ProducerPair:
    """A candidate: `producer` as a further result of `consumer`'s kernel."""

    producer: Instruction
    consumer: Instruction
    state: MultiOutputState


_SMALL_BYTES = 1024
SHARED_READ = outcome("GM001", "Two kernels that read the same array become one", allows=True)
IS_CONSTANT = register("GM003", "A shared constant does not merge kernels", message="… is a constant.")
IS_SCALAR = register("GM004", "A shared scalar does not merge kernels", message="Operand … is not profitable")
CONNECTED = essential("GM010", "One depends on the other", message="… are connected")


def siblings_connected(pair: SiblingPair) -> Decision:
    a, b = pair.fusion, pair.other
    if pair.state.order.connected(a, b):
        return Verdict(CONNECTED, {}, f"{a.name} and {b.name} are connected")
    return None


def sibling_shapes_differ(pair: SiblingPair) -> Decision:
    return shapes_differ(pair.fusion, pair.other, pair.state.model, pair.state.settings)


@condition("GM016", "The two read different parts of the array", message="slices are non-overlapping")
def differing_slices(pair: SiblingPair) -> Answer:
    shape = pair.parent.shape
    if shape.is_tuple or shape.byte_size < _SMALL_BYTES:
        return None
    a, b = _only_slice(pair.parent, pair.fusion), _only_slice(pair.parent, pair.other)
    if a is None or b is None:
        return None
    for dimension, (one, two) in enumerate(zip(a.attributes["slice"], b.attributes["slice"], strict=False)):
        if not (one.start < two.limit and two.start < one.limit):
            return {"dimension": dimension, "slices": [[one.start, one.limit], [two.start, two.limit]]}
    return None


@condition("GM017", "One updates a slice in place", message="can't fuse multiple DUSs")
def updates_in_place(pair: SiblingPair) -> Answer:
    for x in (pair.fusion, pair.other):
        if x.is_fusion and x.fused_root.opcode == "dynamic-update-slice":
            return {"update": x.name}
    return None


def siblings_over_budget(pair: SiblingPair) -> Decision:
    state = pair.state
    return over_budget(pair.fusion, pair.other, state.model, state.settings, producer_consumer=False)


SIBLING_RULES = (
    siblings_connected,
    sibling_shapes_differ,
    differing_slices,
    updates_in_place,
    siblings_over_budget,
)  # `CanFuseSiblings`, in its order


def _only_slice(parent: Instruction, reader: Instruction) -> Instruction | None:
    """The slice through which `reader` sees all it sees of `parent` (`FindUniqueSlice`)."""
    if reader.is_slice:
        return reader
    if not reader.is_fusion:
        return None
    found: Instruction | None = None
    for number, operand in enumerate(reader.operands):
        if operand is parent:
            users = reader.fused_computation.parameters[number].users
            if found is not None or len(users) != 1:
                return None
            found = _only_slice(reader.fused_computation.parameters[number], users[0])
            if found is None:
                return None
    return found


SAVES_TIME = outcome(
    "GM002", "A producer with other users becomes another result of a consumer's kernel", allows=True
)
ANOTHER_PREFERRED = outcome("GM034", "Another consumer is preferred")


@condition("GM020", "The producer already has several results", message="Producer is a multi-output fusion")
def producer_is_multi_output(lone: LoneProducer) -> bool:
    return lone.producer.is_multi_output_fusion


@requirement("GM021", "The producer updates an array in place", message="In-place operations are present")
def producer_in_place(lone: LoneProducer) -> bool:
    return bool(in_place_pairs(lone.producer, lone.state.model.release))


@requirement("GM022", "The producer cannot be emitted per element", message="producer is not loop-fusible")
def producer_not_a_loop(lone: LoneProducer) -> Answer:
    producer = lone.producer
    if is_loop_fusible_producer(producer, lone.state.model.release):
        return None
    return {"opcode": producer.opcode}


@condition("GM023", "The producer transposes in memory", message="producer is physically transposing")
def producer_transposes(lone: LoneProducer) -> bool:
    return is_physically_transposing(lone.producer)


PRODUCER_RULES = (producer_is_multi_output, producer_in_place, producer_not_a_loop, producer_transposes)
"""`IsProducerMultiOutputFusible`, in its order."""


def is_possible_root(instruction: Instruction, model: KernelModel) -> bool:
    """It may share its kernel with another result (`IsFusibleAsMultiOutputFusionRoot`)."""
    if not is_fusible(instruction) or instruction.fusion_kind == "kCustom":
        return False
    if instruction.fusion_kind == "kLoop" or is_elementwise(instruction):
        return True
    summary = model.summary(instruction)
    return summary.is_reduction or has_tiled_transpose(instruction, model)


@requirement(
    "GM030",
    "The consumer cannot have more results",
    message="consumer not eligible as multi-output fusion root.",
)
def consumer_not_a_root(pair: ProducerPair) -> Answer:
    return None if is_possible_root(pair.consumer, pair.state.model) else {"opcode": pair.consumer.opcode}


def producer_shapes_differ(pair: ProducerPair) -> Decision:
    return shapes_differ(pair.consumer, pair.producer, pair.state.model, pair.state.settings)


CYCLE = essential(
    "GM031",
    "An operation between the two needs the kernel's result",
    message="… would introduce a cycle when fused",
)


def creates_cycle(pair: ProducerPair) -> Decision:
    producer, reaches = pair.producer, pair.state.order.reaches
    for operand in pair.consumer.operands:
        if operand is not producer and reaches(producer, operand):
            message = f"{producer.name} would introduce a cycle when fused"
            return Verdict(CYCLE, {"through": operand.name}, message)
    return None


def producer_over_budget(pair: ProducerPair) -> Decision:
    state = pair.state
    return over_budget(pair.producer, pair.consumer, state.model, state.settings, producer_consumer=False)


@condition(
    "GM032", "Too much code would be copied", message="will generate too large IR", knobs=(MAX_IR_SIZE,)
)
def too_much_code(pair: ProducerPair) -> Answer:
    size = pair.state.model.pair(pair.producer, pair.consumer).merged_ir_size
    limit = pair.state.settings.value(MAX_IR_SIZE)
    return {"instructions": size, "limit": int(limit)} if size > limit else None


@condition(
    "GM033", "One kernel would be slower than two", message="will execute slower if fused", estimated=True
)
def slower(pair: ProducerPair) -> Answer:
    fused, unfused = pair.state.model.multi_output_times(pair.producer, pair.consumer)
    if fused <= unfused:
        return None
    return {"us_fused": microseconds(fused), "us_unfused": microseconds(unfused)}


CONSUMER_RULES = (
    consumer_not_a_root,
    producer_shapes_differ,
    creates_cycle,
    producer_over_budget,
    too_much_code,
    slower,
)  # `ProducerCandidateIsFusible`, in its order
