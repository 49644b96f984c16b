"""What CpuInstructionFusion asks about single instructions (`xla/service/cpu/cpu_instruction_fusion.cc`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.expensive import is_expensive, is_expensive_division
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES
from hlofuse.releases import Release

_LOOP_FUSIBLE = frozenset(
    """
    bitcast broadcast concatenate dynamic-slice dynamic-update-slice gather iota pad reduce reshape
    reverse slice transpose
    """.split()
)


def is_loop_fusible(instruction: Instruction) -> bool:
    """Has a generator of its elements that others can be inlined into (`CanBeLoopFused`)."""
    return instruction.opcode in _LOOP_FUSIBLE or is_elementwise(instruction)


def is_expensive_on_cpu(instruction: Instruction, release: Release) -> bool:
    """The shared list, in later releases with CPU's changes (`CpuInstructionFusion::IsExpensive`)."""
    if not release.cpu_own_expensive:
        return is_expensive(instruction)
    opcode = instruction.opcode
    if opcode == "convert":
        # Rounding to bf16 has to look out for NaN.
        return (
            instruction.shape.element_type == "bf16" and instruction.operands[0].shape.element_type == "f32"
        )
    if opcode in ("divide", "remainder"):
        # The dividend is looked at here, the divisor in the shared list: XLA's code is so.
        return is_expensive_division(instruction, constant_operand=0)
    return opcode == "sinh" or is_expensive(instruction)


def is_vector_dot(instruction: Instruction) -> bool:
    """A real dot without batch dimensions whose result is a vector or a scalar."""
    return (
        instruction.opcode == "dot"
        and instruction.shape.rank <= 1
        and instruction.shape.element_type not in COMPLEX_TYPES
        and not instruction.attributes.get("lhs_batch_dims", ())
    )


def is_output_fusible(producer: Instruction, consumer: Instruction) -> bool:
    """The add can be done as the dot's results are written (`CanBeOutputFused`)."""
    if consumer.opcode != "add" or not is_vector_dot(producer) or len(producer.users) != 1:
        return False
    return sum(o is producer for o in producer.users[0].operands) == 1


def has_output_fusible_operand(instruction: Instruction) -> bool:
    """An add that will rather go into its dot (`CanBeOutputFusedIntoSomeOperand`)."""
    return instruction.opcode == "add" and any(
        is_output_fusible(o, instruction) for o in instruction.operands
    )


def is_softmax_shift(instruction: Instruction) -> bool:
    """Feeds both a row maximum and the shift of an exponential (`IsCoupledReductionShiftExpProducer`).

    The maximum and the shifted value must see bit for bit the same number, or exp() overflows.
    """
    if instruction.opcode == "fusion" or not is_elementwise(instruction):
        return False
    reduce = next((u for u in instruction.users if _is_maximum_of(u, instruction)), None)
    return reduce is not None and any(_is_shift(u, instruction, reduce) for u in instruction.users)


def _is_maximum_of(user: Instruction, value: Instruction) -> bool:
    return (
        user.opcode == "reduce"
        and user.operands[0] is value
        and user.called_computations[0].root.opcode == "maximum"
    )


def _is_shift(user: Instruction, value: Instruction, reduce: Instruction) -> bool:
    if user.opcode != "subtract":
        return False
    sources = [o.operands[0] for o in user.operands if o.opcode == "broadcast"]
    shifted = value in user.operands or value in sources
    return shifted and reduce in sources and any(u.opcode == "exponential" for u in user.users)
