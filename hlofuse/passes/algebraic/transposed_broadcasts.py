"""A transpose of a broadcast is a broadcast (`SimplifyTransposeOfBroadcast`)."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import is_sorted


def simplify_transpose_of_broadcast(c: Context, transpose: Instruction, permutation: Sequence[int]) -> None:
    """Where the dimensions stay in their order, and with layouts lie in memory as they do in the operand."""
    broadcast = transpose.operands[0]
    if broadcast.opcode != "broadcast" or not is_sorted(broadcast.dimensions):
        return
    place = inverse(tuple(permutation))
    dimensions = [place[d] for d in broadcast.dimensions]
    small = broadcast.operands[0]
    if not is_sorted(dimensions):
        return
    if c.options.layout_sensitive:
        kept = [d for d in transpose.shape.minor_to_major if d in dimensions]
        if _ranked(small.shape.minor_to_major) != _ranked(kept):
            return
    c.replace(transpose, make.broadcast(transpose, transpose.shape, small, dimensions))


def _ranked(numbers: Sequence[int]) -> list[int]:
    """Where the smallest of the numbers stands, the next one, and so on."""
    return sorted(range(len(numbers)), key=numbers.__getitem__)
