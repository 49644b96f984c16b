"""Operations that move nothing as bitcasts, where layouts are assigned (`HandleBitcast`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_UNARY
from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.chains import remove_chain
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.transposed_broadcasts import simplify_transpose_of_broadcast
from hlofuse.passes.common import make
from hlofuse.passes.common.layout_shapes import transpose_for_bitcast


def handle_bitcast(c: Context, bitcast: Instruction) -> None:
    if bitcast.control_predecessors:
        return
    if _ahead_of_unary(c, bitcast):
        return
    if bitcast.operands[0].opcode == "bitcast":
        handle_bitcast(c, bitcast.operands[0])
    inner = bitcast.operands[0]
    if inner.opcode == "bitcast":
        new = as_bitcast(c, bitcast, inner.operands[0])
        if new is None:
            return
        bitcast = new
    source = bitcast.operands[0]
    if source.shape.element_type != bitcast.shape.element_type:
        return
    if c.replace_if_compatible(bitcast, source):
        bitcast = source
    if bitcast.opcode not in ("bitcast", "reshape", "transpose") or remove_chain(c, bitcast):
        return
    if bitcast.opcode == "bitcast" and bitcast.operands[0].opcode == "broadcast":
        permutation = transpose_for_bitcast(bitcast.operands[0].shape, bitcast.shape)
        if permutation is not None:
            simplify_transpose_of_broadcast(c, bitcast, permutation)


def as_bitcast(c: Context, old: Instruction, operand: Instruction | None = None) -> Instruction | None:
    """`old` as a bitcast of `operand`, its own where none is given (`ReplaceWithBitcast`)."""
    new = make.add(old, "bitcast", old.shape, [operand or old.operands[0]])
    return new if c.replace(old, new) else None


def bitcasting_operand(c: Context, x: Instruction) -> Instruction | None:
    """What a chain of reshapes and copies reads, if the whole moves nothing
    (`BitcastingOperandOfReshapeOrCopyChain`)."""
    if not c.options.layout_sensitive:
        return None
    operand = x.operands[0]
    while True:
        if not operand.shape.is_array or not x.shape.is_array:
            return None
        if reshape_is_bitcast(operand.shape, x.shape):
            return operand
        if operand.opcode not in ("reshape", "copy"):
            return None
        operand = operand.operands[0]


def bitcast_convert_is_bitcast(x: Instruction) -> bool:
    """Same shape, or the last dimension is most minor where one is split or joined."""
    source, result = x.operands[0].shape, x.shape
    if source.key_ignoring_element_type == result.key_ignoring_element_type:
        return True
    longer = source if source.rank > result.rank else result
    return longer.rank > 0 and longer.minor_to_major[0] == longer.rank - 1 and longer.bit_width % 8 == 0


def _ahead_of_unary(c: Context, bitcast: Instruction) -> bool:
    """bitcast(f(bitcast(x))) is bitcast(f(x))."""
    unary = bitcast.operands[0]
    if unary.opcode not in ELEMENTWISE_UNARY or len(unary.operands) != 1 or len(unary.users) != 1:
        return False
    inner = unary.operands[0]
    if inner.opcode != "bitcast":
        return False
    source = inner.operands[0]
    if len({i.shape.element_type for i in (bitcast, unary, inner, source)}) > 1:
        return False
    new = make.copy_of(unary, [source], source.shape)
    return as_bitcast(c, bitcast, new) is not None


def handle_bitcast_convert(c: Context, x: Instruction) -> None:
    operand = x.operands[0]
    if operand.opcode == "bitcast-convert":
        c.replace(x, make.add(x, "bitcast-convert", x.shape, [operand.operands[0]]))
        return
    if operand.opcode == "concatenate":
        result = x.shape.element_type
        inner = [o.operands[0] for o in operand.operands if o.opcode == "bitcast-convert"]
        if len(inner) == len(operand.operands) and all(i.shape.element_type == result for i in inner):
            c.replace(x, make.concatenate(inner[0], inner, operand.dimensions[0]))
            return
    if c.options.layout_sensitive and c.options.bitcast_convert_as_bitcast and bitcast_convert_is_bitcast(x):
        as_bitcast(c, x)
        return
    c.replace_if_compatible(x, operand)
