"""From the layout of one side of an operation to a good one of the other side.

Mirrors `ChooseOperandLayoutFromOutputLayout` and `ChooseOutputLayoutFromOperandLayout`.
"""

from __future__ import annotations

from collections.abc import Callable

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.layout_shapes import relaid
from hlofuse.passes.common.shapes import ones_moved, permute, without
from hlofuse.passes.layout.constraints import Order

Aligned = Callable[[Shape, Shape], Order | None]
"""The layout of the second shape that makes a reshape between the two a bitcast."""

# What cannot give its result another layout than its operands have (`InstructionCanChangeLayout`).
_KEEPS_LAYOUT = frozenset(
    """
    abs acos acosh asin asinh add add-dependency and atan2 atanh bitcast-convert ceil clamp
    count-leading-zeros compare complex concatenate convert cosine cosh all-gather all-gather-start
    all-gather-done all-to-all collective-broadcast collective-permute divide dynamic-slice
    dynamic-update-slice erf exponential exponential-minus-one fft floor imag is-finite log log-plus-one
    logistic map maximum minimum multiply mulhi negate not opt-barrier or xor pad power
    real reduce-precision reduce-window remainder reverse round-nearest-afz round-nearest-even rsqrt scatter
    select select-and-scatter shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice
    sort topk sqrt cbrt subtract stochastic-convert tan tanh popcnt triangular-solve cholesky while
    set-dimension-size all-reduce reduce-scatter all-reduce-start all-reduce-done ragged-all-to-all scan
    """.split()
)


def can_change_layout(instruction: Instruction) -> bool:
    """`InstructionCanChangeLayout`; the target `__gpu$TopK` is named by XLA:GPU's own alone."""
    if instruction.opcode == "custom-call":
        return custom_call_target(instruction) not in ("LayoutConstraint", "__gpu$TopK")
    return instruction.opcode not in _KEEPS_LAYOUT


def goes_depth_first(instruction: Instruction) -> bool:
    """`InstructionShouldPropagateDepthFirst`."""
    opcode = instruction.opcode
    if opcode == "reshape":
        source = instruction.operands[0].shape
        return source.rank == 1 or ones_moved(source, instruction.shape) is not None
    return opcode in ("gather", "scatter", "transpose") or instruction.fusion_kind == "kCustom"


def operand_order(order: Order, instruction: Instruction, number: int, aligned: Aligned) -> Order | None:
    """The layout of an operand that goes well with the result's."""
    operand, opcode = instruction.operands[number].shape, instruction.opcode
    if operand.rank and operand.rank == instruction.shape.rank and not can_change_layout(instruction):
        return order
    if opcode == "reshape":
        if operand.true_rank == 1 and instruction.shape.true_rank == 1:
            return None
        return aligned(relaid(instruction.shape, order), operand)
    if opcode == "transpose":
        return permute(instruction.dimensions, order)
    return None


def row_reduction_order(order: Order, reduce: Instruction) -> Order:
    """The layout of an operand that makes the reduction one of rows."""
    reduced = reduce.dimensions
    kept = [d for d in range(reduce.operands[0].shape.rank) if d not in reduced]
    return (*reversed(reduced), *(kept[d] for d in order))


def result_order(order: Order, user: Instruction, number: int, aligned: Aligned) -> Order | None:
    """The layout of the result that goes well with an operand's."""
    operand, opcode = user.operands[number].shape, user.opcode
    if opcode == "reduce" and user.shape.is_tuple:
        return without(relaid(operand, order), user.dimensions).minor_to_major
    if operand.rank and operand.rank == user.shape.rank and not can_change_layout(user):
        return order
    if opcode == "reshape":
        if operand.true_rank == 1 and user.shape.true_rank == 1:
            return None
        return aligned(relaid(operand, order), user.shape)
    if opcode == "transpose":
        back = inverse(user.dimensions)
        return permute(back, order)
    return None


def broadcast_operand_order(order: Order, broadcast: Instruction) -> Order:
    """`GetBroadcastLayoutFromOutput`: the dimensions that come from the operand, as they lie."""
    gone = [d for d in range(broadcast.shape.rank) if d not in broadcast.dimensions]
    return without(relaid(broadcast.shape, order), gone).minor_to_major
