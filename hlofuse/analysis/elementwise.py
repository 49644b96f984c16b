"""Element-wise operations: an output element depends on the same element of the operands
(`HloInstruction::IsElementwise`). Operations that move no data because the layout already says it."""

from collections import deque

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.opcodes import values, with_operands, with_trait
from hlofuse.ir.removing import has_side_effect
from hlofuse.ir.shape import COMPLEX_TYPES, INTEGER_TYPES
from hlofuse.releases import Release


def transpose_is_bitcast(instruction: Instruction) -> bool:
    """A transpose whose result lies in memory as its operand does (`ShapeUtil::TransposeIsBitcast`)."""
    source = instruction.operand.shape
    result = instruction.shape
    mapping = instruction.dimensions
    if source.element_type != result.element_type or not source.rank == result.rank == len(mapping):
        return False
    try:
        return all(a == mapping[b] for a, b in zip(source.minor_to_major, result.minor_to_major, strict=True))
    except (IndexError, ValueError):
        return False  # a layout that does not fit its shape


def is_effective_bitcast(instruction: Instruction) -> bool:
    """A bitcast, or a transpose that is one (`HloInstruction::IsEffectiveBitcast`)."""
    opcode = instruction.opcode
    return opcode == "bitcast" or (opcode == "transpose" and transpose_is_bitcast(instruction))


def without_bitcasts(x: Instruction) -> Instruction:
    """`x`, or the value below its bitcasts."""
    return x.through("bitcast")


def without_views(x: Instruction) -> Instruction:
    """`x`, or the value below its bitcasts and reshapes."""
    return x.through("bitcast", "reshape")


def moves_no_data(instruction: Instruction) -> bool:
    """As `is_effective_bitcast`, and reshapes between row-major arrays too."""
    if instruction.is_reshape:
        source = instruction.operand.shape
        result = instruction.shape
        row_major = all(s.layout is None or s.layout.is_default for s in (source, result))
        return row_major and source.element_type == result.element_type
    return is_effective_bitcast(instruction)


def is_fusion_body(computation: Computation, release: Release) -> bool:
    """True for the body of a fusion, also of one that was removed (`HloComputation::IsFusionComputation`)."""
    if computation.fusion is not None:
        return True
    return release.merged_bodies_stay and not computation.callers and not computation.is_entry


ELEMENTWISE_OPCODES = with_trait("elementwise")
ELEMENTWISE_BINARY = ELEMENTWISE_OPCODES & with_operands(2)
ELEMENTWISE_UNARY = ELEMENTWISE_OPCODES & with_operands(1)


def is_elementwise(instruction: Instruction) -> bool:
    """Elementwise as a whole: pointwise operations, constants and rng, and fusions of nothing else."""
    opcode = instruction.opcode
    if opcode in ELEMENTWISE_OPCODES:
        return (
            opcode != "bitcast-convert" or instruction.shape.bit_width == instruction.operand.shape.bit_width
        )
    if opcode in ("constant", "rng"):
        return True
    if opcode == "map":
        dimensions = instruction.dimensions
        return not dimensions or dimensions == tuple(range(instruction.rank))
    if opcode == "fusion":
        return all(inner.is_parameter or is_elementwise(inner) for inner in instruction.fused_computation)
    return False


def is_elementwise_on_operand(instruction: Instruction, number: int) -> bool:
    """Elementwise as far as the operand at `number` is concerned (`IsElementwiseOnOperand`)."""
    if instruction.opcode == "dynamic-update-slice":
        return number == 0
    if not instruction.is_fusion:
        return is_elementwise(instruction)
    start = instruction.fused_computation.parameters[number]
    queue = deque([start])
    seen = {start}
    while queue:
        source = queue.popleft()
        for user in source.users:
            if user in seen:
                continue
            if not is_elementwise(user) and not all(
                is_elementwise_on_operand(user, k) for k, o in enumerate(user.operands) if o is source
            ):
                return False
            queue.append(user)
            seen.add(user)
    return True


CHEAP_OPCODES = with_trait("cheap")
_CHEAP_UNLESS_COMPLEX = values("abs cosine sign sine sinh tan")


def is_expensive(instruction: Instruction) -> bool:
    """The list all targets start from (`InstructionFusion::IsExpensive`)."""
    opcode = instruction.opcode
    if opcode in CHEAP_OPCODES:
        return False
    if opcode in _CHEAP_UNLESS_COMPLEX:
        return instruction.element_type in COMPLEX_TYPES
    if opcode in ("divide", "remainder"):
        return is_expensive_division(instruction, constant_operand=1)
    return True


def is_expensive_division(instruction: Instruction, constant_operand: int) -> bool:
    """Integer division by a constant becomes multiplications and shifts, anything else is expensive."""
    if instruction.element_type not in INTEGER_TYPES:
        return True
    return not is_constant_effective_scalar(instruction.operands[constant_operand].past("broadcast"))


def is_constant_effective_scalar(instruction: Instruction) -> bool:
    """A constant of one element (`m::ConstantEffectiveScalar`)."""
    return instruction.is_constant and instruction.shape.is_effective_scalar


# Instructions that may be in a fusion at all (`HloInstruction::IsFusible`).

_NEVER = values("domain parameter while conditional call")
ALWAYS_FUSIBLE = ELEMENTWISE_OPCODES | with_trait("fusible")


def is_fusible(instruction: Instruction) -> bool:
    """False for parameters, control flow and whatever has a side effect."""
    opcode = instruction.opcode
    if opcode in _NEVER:
        return False
    if opcode in ALWAYS_FUSIBLE:
        return True
    if opcode == "rng":
        return instruction.user_count <= 1
    return not has_side_effect(instruction)


def is_broadcast_of_constant(x: Instruction) -> bool:
    """True if every element is the same constant."""
    return x.is_broadcast and x.operand.is_constant


def is_constant(x: Instruction) -> bool:
    """True if it is a constant, or every element of it is one."""
    return x.is_constant or is_broadcast_of_constant(x)
