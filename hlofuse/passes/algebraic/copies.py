"""Copies, where layouts are assigned (`HandleCopy`)."""

from __future__ import annotations

from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.bitcasts import as_bitcast, bitcasting_operand
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make


def handle_copy(c: Context, copy: Instruction) -> None:
    operand = copy.operands[0]
    if not copy.shape.is_array:
        return
    if operand.opcode == "copy":
        source = operand.operands[0]
        if source.shape.key == copy.shape.key:
            c.replace(copy, source)
        else:
            c.replace(copy, make.add(copy, "copy", copy.shape, [source]))
        return
    module = c.computation.module
    is_result = module is not None and module.entry.root is copy
    if not (is_result and "sharding" in copy.attributes) and c.replace_if_compatible(copy, operand):
        return
    source_of_bitcast = bitcasting_operand(c, copy)
    if source_of_bitcast is not None:
        as_bitcast(c, copy, source_of_bitcast)
        return
    is_moved = operand.opcode == "reshape" and len(operand.users) == 1
    if is_moved and reshape_is_bitcast(operand.shape, copy.shape):
        c.replace(copy, make.copy_of(operand, [operand.operands[0]], copy.shape))
