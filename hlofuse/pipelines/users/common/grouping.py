"""What ReductionDimensionGrouper made.

See `xla/backends/gpu/transforms/reduction_dimension_grouper.cc`: a reduction over several dimensions in a row
becomes one over a single dimension of a bitcast.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape


def is_grouped(reduction: Instruction, grouped: Instruction) -> bool:
    """Is it such a reduction, which reads the bitcast `grouped`?"""
    if grouped.opcode != "bitcast" or grouped.shape.rank >= grouped.operands[0].shape.rank:
        return False
    if reduction.opcode != "reduce" or reduction.operands[0] is not grouped:
        return False
    return _ends_of_dimensions(grouped.shape) <= _ends_of_dimensions(grouped.operands[0].shape)


def _ends_of_dimensions(shape: Shape) -> set[int]:
    """How many elements there are along the dimensions up to each, as they lie in memory."""
    return set(accumulate((shape.dimensions[d] for d in shape.minor_to_major), mul))


def is_grouped_reduction(x: Instruction) -> bool:
    """Is it one? It was given all users of what it was made of, as they stood."""
    return x.opcode == "reduce" and is_grouped(x, x.operands[0])


def is_reduced(x: Instruction) -> bool:
    """Is it a reduction, or a bitcast for reductions only?"""
    if x.opcode == "bitcast" and x.users:
        return all(u.opcode == "reduce" for u in x.users)
    return x.opcode == "reduce"
