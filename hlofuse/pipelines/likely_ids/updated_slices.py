"""Slices of what a scatter with one index updates.

ScatterExpander (`xla/service/scatter_expander.cc`) makes a dynamic slice and a dynamic update of such a
scatter while simplification goes around, and calls what combines the two. Only once that is inlined, the
next time around, AlgebraicSimplifier makes a slice of the former whose start is a number.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


def is_of_updated(x: Instruction) -> bool:
    """Is it such a slice? The expander tells of no place in the source."""
    if x.opcode != "slice" or x.op_name:
        return False
    (updated,) = x.operands
    return any(
        v.opcode == "dynamic-update-slice" and v.operands[0] is updated and _was_scatter(v)
        for u in x.users
        for v in u.users
    )


def _was_scatter(x: Instruction) -> bool:
    return operation(x).split("-")[0] == "scatter"
