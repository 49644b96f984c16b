"""Candidates of PriorityFusion, a producer fused into a consumer, and the rules about them: the limits of
machine and compiler, structure, and what settles a producer once its users have been asked."""

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.summary import SummaryPair
from hlofuse.cost.tiling.constraints import Refusal, Tiling
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.rules.catalogue import Knob, essential, outcome, register
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, is_scatter_fusion, may_be_fused, updated_operand
from hlofuse.rules.instruction_fusion import FusionState
from hlofuse.rules.settings import Settings
from hlofuse.rules.verdict import Answer, Decision, Verdict, condition, requirement


@dataclass(slots=True)
class PriorityState:
    """State of a run of the pass, in addition to the graph."""

    model: CombinedModel
    settings: Settings
    triton: TritonSupport
    tiled: Callable[[Instruction, Instruction], Tiling | Refusal]
    """The best tiling of a pair of which one is a Triton fusion, as XLA's cache answers."""
    in_place: FusionState  # For the in-place rules, which all fusion passes share


@dataclass(slots=True)
class PriorityPair:
    """The question: `producer` is an operand of `consumer`."""

    producer: Instruction
    consumer: Instruction
    state: PriorityState
    cached_pair: SummaryPair | None = None  # The structure of the two, if the caller has it

    @property
    def structure(self) -> SummaryPair:
        """The structure of the two, independent of names."""
        pair = self.cached_pair
        if pair is None:
            pair = self.cached_pair = self.state.model.pair(self.producer, self.consumer)
        return pair


MAX_REDUCTIONS = Knob("gpu-max-unnested-reductions", 8)
MAX_PARAMETERS = Knob("gpu-max-operands-and-outputs", 96)
MAX_IR_SIZE = Knob("gpu-max-ir-size", 10_000)
SHARED_MEMORY = essential(
    "PF010",
    "The kernel would need more shared memory than a block has",
    message="shared memory usage would be over the budget of …B",
)
TOO_MANY_REDUCTIONS = register(
    "PF011",
    "The kernel would have too many reductions",
    message="over 8 unnested reductions in fusion",
    knobs=(MAX_REDUCTIONS,),
)
TOO_MANY_PARAMETERS = register(
    "PF012",
    "The kernel would have too many inputs and outputs",
    message="Number of operands and output buffers is larger than allowed budget per fusion",
    knobs=(MAX_PARAMETERS,),
)


def _count(shape: Shape) -> int:
    """`ShapeUtil::SubshapeCount`."""
    return 1 + sum(map(_count, shape.tuple_shapes)) if shape.is_tuple else 1


def over_parameter_limit(
    first: Instruction, second: Instruction, settings: Settings, *, producer_consumer: bool
) -> Decision:
    """`FusionFitsInParameterLimit`; with `producer_consumer` the first is the consumer."""
    outputs = _count(first.shape) + _count(second.shape)
    limit = settings.value(MAX_PARAMETERS)
    if first.operand_count + second.operand_count - 1 + outputs <= limit:
        return None
    operands = {*first.operands, *second.operands} - {first, second}
    if producer_consumer and len(operands) <= first.operand_count:
        return None
    if len(operands) + outputs <= limit:
        return None
    return Verdict(TOO_MANY_PARAMETERS, {"operands": len(operands), "outputs": outputs, "limit": int(limit)})


def over_budget(
    first: Instruction,
    second: Instruction,
    model: KernelModel,
    settings: Settings,
    *,
    producer_consumer: bool,
) -> Decision:
    """`FusionFitsInBudget`; with `producer_consumer` the first is the consumer."""
    a, b, off = model.summary(first), model.summary(second), settings.disabled
    limit = model.device.shared_memory_per_block
    shared = a.shared_memory + b.shared_memory
    if shared > limit and SHARED_MEMORY.code not in off:
        message = f"shared memory usage would be over the budget of {limit}B"
        return Verdict(SHARED_MEMORY, {"bytes": shared, "limit_bytes": limit}, message)
    most = settings.value(MAX_REDUCTIONS)
    reductions = a.unnested_reductions + b.unnested_reductions
    if reductions > most and TOO_MANY_REDUCTIONS.code not in off:
        message = f"over {int(most)} unnested reductions in fusion"
        return Verdict(TOO_MANY_REDUCTIONS, {"reductions": reductions, "limit": int(most)}, message)
    if TOO_MANY_PARAMETERS.code in off:
        return None
    return over_parameter_limit(first, second, settings, producer_consumer=producer_consumer)


def kernel_over_budget(pair: PriorityPair) -> Decision:
    """The three limits for a producer that goes into its consumer."""
    state = pair.state
    return over_budget(pair.consumer, pair.producer, state.model, state.settings, producer_consumer=True)


def triton_over_limit(pair: PriorityPair) -> Decision:
    if not pair.state.model.release.triton_limits_parameters:
        return None
    return over_parameter_limit(pair.consumer, pair.producer, pair.state.settings, producer_consumer=True)


@condition(
    "PF013",
    "Too much code would be duplicated",
    message="the fusion would result in an overly large code duplication",
    knobs=(MAX_IR_SIZE,),
)
def code_duplication(pair: PriorityPair) -> Answer:
    size = pair.structure.merged_ir_size
    limit = pair.state.settings.value(MAX_IR_SIZE)
    return {"instructions": size, "limit": int(limit)} if size > limit else None


@requirement(
    "PF001",
    "The producer is the result of its computation",
    message="not fusing into the output of the root instruction",
)
def producer_is_root(pair: PriorityPair) -> bool:
    return pair.producer.is_root


@requirement(
    "PF002",
    "The producer is a library call, Triton GEMM or custom call",
    message="the producer is not fusible",
)
def producer_not_fusible(pair: PriorityPair) -> Answer:
    return None if may_be_fused(pair.producer, pair.state.model.release) else {"opcode": pair.producer.opcode}


@requirement("PF003", "The consumer cannot be fused into", message="the consumer is not fusible")
def consumer_not_fusible(pair: PriorityPair) -> Answer:
    return None if may_be_fused(pair.consumer, pair.state.model.release) else {"opcode": pair.consumer.opcode}


@condition("PF004", "The consumer is a bitcast", message="not fusing into a single bitcast as consumer")
def consumer_is_bitcast(pair: PriorityPair) -> bool:
    return is_fusible_bitcast(pair.consumer, pair.state.model.release)


@condition("PF008", "Both contain a reduce", message="both the producer and the consumer contain a reduce")
def both_reduce(pair: PriorityPair) -> bool:
    of = pair.structure
    return of.producer.significant_reduce and of.consumer.significant_reduce


@condition(
    "PF009",
    "A reduction would become a plain loop",
    message="fusion into output of a reduce fusion would create a loop fusion",
)
def reduction_becomes_loop(pair: PriorityPair) -> bool:
    model = pair.state.model
    alone = pair.structure.producer.launch or model.launch(pair.producer)
    if alone.kind != "reduction":
        return False
    launch = model.pair_launch(pair.producer, pair.consumer, pair.structure)
    return launch.kind == "loop"


@requirement("PF005", "The producer is a scatter", message="do not fuse into the output of scatter")
def producer_is_scatter(pair: PriorityPair) -> bool:
    return is_scatter_fusion(pair.producer)


@requirement(
    "PF006",
    "The producer computes the array that a scatter updates",
    message="do not fuse into the in-place operand of scatter",
)
def producer_is_scattered_into(pair: PriorityPair) -> bool:
    return updated_operand(pair.consumer) is pair.producer


@requirement(
    "PF007",
    "The producer reads the array that a scatter updates",
    message="Producer uses the in-place operand of a scatter",
)
def producer_reads_updated(pair: PriorityPair) -> Answer:
    updated = updated_operand(pair.consumer)
    return {"array": updated.name} if updated is not None and updated in pair.producer.operands else None


# Rules for pairs of which one is a Triton fusion already: the other must be something Triton can emit.

UNSUPPORTED = essential("PF020", "Triton does not support the operation", message="Unsupported …")
NOT_TILED = essential(
    "PF021",
    "The Triton kernel cannot be tiled",
    message="Fusion can not be tiled with SymbolicTileAnalysis: …",
)


def producer_unsupported_by_triton(pair: PriorityPair) -> Decision:
    reason = pair.state.triton.refusal(pair.producer)
    return None if reason is None else Verdict(UNSUPPORTED, {"of": "producer"}, reason)


def consumer_unsupported_by_triton(pair: PriorityPair) -> Decision:
    reason = pair.state.triton.refusal(pair.consumer)
    return None if reason is None else Verdict(UNSUPPORTED, {"of": "consumer"}, reason)


def not_tiled(pair: PriorityPair) -> Decision:
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
