"""Element-wise operations: an output element depends on the same element of the operands
(`HloInstruction::IsElementwise`).
"""

from collections import deque

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES, INTEGER_TYPES

ELEMENTWISE_OPCODES = frozenset(
    """
    abs acos acosh add and asin asinh atan2 atanh bitcast-convert cbrt ceil clamp compare complex convert
    copy cosine cosh count-leading-zeros divide erf exponential exponential-minus-one floor imag is-finite
    log log-plus-one logistic maximum minimum multiply mulhi negate not or popcnt power real
    reduce-precision remainder round-nearest-afz round-nearest-even rsqrt select shift-left
    shift-right-arithmetic shift-right-logical sign sine sinh sqrt stochastic-convert subtract tan tanh
    xor
    """.split()
)

ELEMENTWISE_BINARY = frozenset(
    """
    add and atan2 compare complex divide maximum minimum multiply mulhi or power remainder shift-left
    shift-right-arithmetic shift-right-logical stochastic-convert subtract xor
    """.split()
)
ELEMENTWISE_UNARY = ELEMENTWISE_OPCODES - ELEMENTWISE_BINARY - {"clamp", "select"}


def is_elementwise(instruction: Instruction) -> bool:
    """Elementwise as a whole: pointwise operations, constants and rng, and fusions of nothing else."""
    opcode = instruction.opcode
    if opcode in ELEMENTWISE_OPCODES:
        return (
            opcode != "bitcast-convert"
            or instruction.shape.bit_width == instruction.operands[0].shape.bit_width
        )
    if opcode in ("constant", "rng"):
        return True
    if opcode == "map":
        dimensions = instruction.dimensions
        return not dimensions or dimensions == tuple(range(instruction.shape.rank))
    if opcode == "fusion":
        return all(
            inner.opcode == "parameter" or is_elementwise(inner) for inner in instruction.fused_computation
        )
    return False


def is_elementwise_on_operand(instruction: Instruction, number: int) -> bool:
    """Elementwise as far as the operand at `number` is concerned (`IsElementwiseOnOperand`)."""
    if instruction.opcode == "dynamic-update-slice":
        return number == 0
    if instruction.opcode != "fusion":
        return is_elementwise(instruction)
    start = instruction.fused_computation.parameters[number]
    queue, seen = deque([start]), {start}
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


CHEAP_OPCODES = frozenset(
    """
    add and bitcast bitcast-convert broadcast ceil clamp compare complex concatenate constant convert copy
    copy-done copy-start count-leading-zeros dynamic-reshape dynamic-slice dynamic-update-slice floor
    get-tuple-element imag infeed iota is-finite maximum minimum mulhi multiply negate not opt-barrier or
    outfeed pad partition-id popcnt real reduce-precision replica-id reshape reverse round-nearest-afz
    round-nearest-even select shift-left shift-right-arithmetic shift-right-logical slice
    stochastic-convert subtract transpose tuple xor
    """.split()
)
_CHEAP_UNLESS_COMPLEX = frozenset({"abs", "cosine", "sign", "sine", "sinh", "tan"})


def is_expensive(instruction: Instruction) -> bool:
    """The list all targets start from (`InstructionFusion::IsExpensive`)."""
    opcode = instruction.opcode
    if opcode in CHEAP_OPCODES:
        return False
    if opcode in _CHEAP_UNLESS_COMPLEX:
        return instruction.shape.element_type in COMPLEX_TYPES
    if opcode in ("divide", "remainder"):
        return is_expensive_division(instruction, constant_operand=1)
    return True


def is_expensive_division(instruction: Instruction, constant_operand: int) -> bool:
    """Integer division by a constant becomes multiplications and shifts, anything else is expensive."""
    if instruction.shape.element_type not in INTEGER_TYPES:
        return True
    operand = instruction.operands[constant_operand]
    if operand.opcode == "broadcast":
        operand = operand.operands[0]
    return not is_constant_effective_scalar(operand)


def is_constant_effective_scalar(instruction: Instruction) -> bool:
    """A constant of one element (`m::ConstantEffectiveScalar`)."""
    return instruction.opcode == "constant" and instruction.shape.is_effective_scalar


# Instructions that may be in a fusion at all (`HloInstruction::IsFusible`).

_NEVER = frozenset({"domain", "parameter", "while", "conditional", "call"})
ALWAYS_FUSIBLE = ELEMENTWISE_OPCODES | {
    "fusion", "map", "reduce", "reduce-window",
    "bitcast", "broadcast", "concatenate", "constant", "dot", "dynamic-slice", "dynamic-update-slice",
    "gather", "get-tuple-element", "iota", "pad", "reshape", "slice", "transpose", "tuple",
}  # fmt: skip


def is_fusible(instruction: Instruction) -> bool:
    """False for parameters, control flow and whatever has a side effect."""
    opcode = instruction.opcode
    if opcode in _NEVER:
        return False
    if opcode in ALWAYS_FUSIBLE:
        return True
    if opcode == "rng":
        return len(instruction.users) <= 1
    return not has_side_effect(instruction)


def is_broadcast_of_constant(x: Instruction) -> bool:
    """True if every element is the same constant."""
    return x.opcode == "broadcast" and x.operands[0].opcode == "constant"


def is_constant(x: Instruction) -> bool:
    """True if it is a constant, or every element of it is one."""
    return x.opcode == "constant" or is_broadcast_of_constant(x)
