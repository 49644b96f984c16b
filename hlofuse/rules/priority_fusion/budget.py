"""Rules that keep a kernel within the machine's and the compiler's limits."""

from typing import Any

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.summary import FEW_OPERANDS, LITTLE_CODE, Summary
from hlofuse.cost.gpu.ticks import EXACT
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.rules.catalogue import Knob, essential, register
from hlofuse.rules.priority_fusion.candidate import PriorityPair
from hlofuse.rules.settings import Settings
from hlofuse.rules.verdict import Verdict, condition

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
) -> Verdict | None:
    """`FusionFitsInParameterLimit`; with `producer_consumer` the first is the consumer."""
    outputs = _count(first.shape) + _count(second.shape)
    limit = settings.value(MAX_PARAMETERS)
    if len(first.operands) + len(second.operands) - 1 + outputs <= limit:
        return None
    operands = {*first.operands, *second.operands} - {first, second}
    if producer_consumer and len(operands) <= len(first.operands):
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
) -> Verdict | None:
    """`FusionFitsInBudget`; with `producer_consumer` the first is the consumer."""
    a, b = model.summary(first), model.summary(second)
    verdict = _over_machine(a, b, model, settings) or over_parameter_limit(
        first, second, settings, producer_consumer=producer_consumer
    )
    return None if verdict is None or verdict.rule.code in settings.disabled else verdict


def _over_machine(a: Summary, b: Summary, model: KernelModel, settings: Settings) -> Verdict | None:
    """The limits that do not depend on which operands the two share."""
    off = settings.disabled
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
    return None


class Limits:
    """What the rules of this file hold a pair against in one run of the pass."""

    def __init__(self, device: DeviceDescription, settings: Settings) -> None:
        self._shared_memory = device.shared_memory_per_block
        self._reductions = settings.value(MAX_REDUCTIONS)
        self.admit_plain = self._shared_memory >= 0 and self._reductions >= 0
        """A what-if run may allow fewer than no reductions."""
        self.parameters = settings.value(MAX_PARAMETERS)
        self.ir_size = min(settings.value(MAX_IR_SIZE), EXACT - 1)
        """Where it is more, `merged_ir_size` is asked what the sum comes to in single precision."""
        self.admit_small = (
            self.admit_plain
            and self.parameters > 2 * FEW_OPERANDS
            and self.ir_size >= LITTLE_CODE * (LITTLE_CODE + 1)
        )
        """Two that are small are within all limits: code is copied at most as often as there is any."""

    def admit(self, a: Summary, b: Summary) -> bool:
        """What the two take of a block's resources is within the limits, and each has one result."""
        return (
            a.shared_memory + b.shared_memory <= self._shared_memory
            and a.unnested_reductions + b.unnested_reductions <= self._reductions
            and not (a.is_tuple or b.is_tuple)
        )


def kernel_over_budget(pair: PriorityPair) -> Verdict | None:
    """The three limits for a producer that goes into its consumer."""
    state, of = pair.state, pair.structure
    verdict = _over_machine(of.consumer, of.producer, state.model, state.settings)
    if verdict is None:
        verdict = parameters_over_limit(pair)
    return None if verdict is None or verdict.rule.code in state.settings.disabled else verdict


def triton_over_limit(pair: PriorityPair) -> Verdict | None:
    """The limit of inputs and outputs for Triton fusions."""
    return parameters_over_limit(pair) if pair.state.model.release.triton_limits_parameters else None


def parameters_over_limit(pair: PriorityPair) -> Verdict | None:
    """The limit of inputs and outputs alone."""
    return over_parameter_limit(pair.consumer, pair.producer, pair.state.settings, producer_consumer=True)


@condition(
    "PF013",
    "Too much code would be duplicated",
    message="the fusion would result in an overly large code duplication",
    knobs=(MAX_IR_SIZE,),
)
def code_duplication(pair: PriorityPair) -> dict[str, Any] | None:
    size = pair.structure.merged_ir_size
    limit = pair.state.settings.value(MAX_IR_SIZE)
    return {"instructions": size, "limit": int(limit)} if size > limit else None
