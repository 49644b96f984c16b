"""Products of two batch dimensions get one (`NormalizeBatchDimensions`)."""

from __future__ import annotations

from dataclasses import replace

from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.make import reshaped, transposed
from hlofuse.passes.common.shapes import permute, permuted, with_dimensions, without
from hlofuse.passes.dot.dot_operand import BATCH, CONTRACTING, DotOperand


def has_two_batches(dot: Instruction) -> bool:
    return len(DotDimensions.of(dot).lhs_batch) == 2


def with_one_batch(dot: Instruction) -> Instruction:
    """What `dot` gives: a product with one, reshaped."""
    operands, sides = [], []
    for number, operand in enumerate(dot.operands):
        side, laid = DotOperand.of(dot, number), operand.shape
        first, second = side.groups[BATCH]
        if second != first + 1:
            order = [d for d in range(len(side.sizes)) if d != second]
            order.insert(first if second < first else first + 1, second)
            shape = with_dimensions(operand.shape, permute(operand.shape.dimensions, order))
            operand, laid = transposed(operand, order, shape), permuted(laid, order)
            side = side.permuted(order)
        # The transpose is row-major; the reshape lies as the operand did.
        laid = without(laid, [side.groups[BATCH][1]])
        side = side.collapsed(BATCH)
        operands.append(reshaped(operand, replace(laid, dimensions=side.sizes)))
        sides.append(side)
    batch, contracting = ([side.groups[kind] for side in sides] for kind in (BATCH, CONTRACTING))
    new = new_dot(dot, operands, batch, contracting, dot.shape.element_type, dot)
    return reshaped(new, dot.shape)
