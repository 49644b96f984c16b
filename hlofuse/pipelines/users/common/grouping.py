"""What ReductionDimensionGrouper made.

See `xla/backends/gpu/transforms/reduction_dimension_grouper.cc`: a reduction over several dimensions in a row
becomes one over a single dimension of a bitcast.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def is_grouped(reduction: Instruction, grouped: Instruction) -> bool:
    """Is it such a reduction, which reads the bitcast `grouped`?"""
    if grouped.opcode != "bitcast" or grouped.shape.rank >= grouped.operands[0].shape.rank:
        return False
    return reduction.opcode == "reduce" and reduction.operands[0] is grouped


def is_grouped_reduction(x: Instruction) -> bool:
    """Is it one? It was given all users of what it was made of, as they stood."""
    return x.opcode == "reduce" and is_grouped(x, x.operands[0])
