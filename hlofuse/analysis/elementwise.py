"""Element-wise operations: an output element depends on the same element of the operands
(`HloInstruction::IsElementwise`)."""

from __future__ import annotations

from collections import deque

from hlofuse.ir.graph import Instruction

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
