"""Slices of what a scatter with one index updates.

ScatterExpander (`xla/service/scatter_expander.cc`) makes a dynamic slice and a dynamic update of such a
scatter while simplification goes around, and calls what combines the two. Only once that is inlined, the
next time around, AlgebraicSimplifier makes a slice of the former whose start is a number, and scalars of the
comparisons of one index with its bounds.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


def is_of_updated(x: Instruction) -> bool:
    """Is it such a slice, or of such bounds? The expander tells of no place in the source."""
    if x.op_name:
        return False
    if x.opcode in {"and", "compare"}:
        return _is_of_bounds(x)
    if x.opcode != "slice":
        return False
    (updated,) = x.operands
    return any(
        v.opcode == "dynamic-update-slice" and v.operands[0] is updated and _was_scatter(v)
        for u in x.users
        for v in u.users
    )


def _is_of_bounds(x: Instruction) -> bool:
    """Does it tell whether an index is within bounds, for the choice of what is updated with?"""
    if x.shape.rank or len(x.users) != 1:
        return False
    (user,) = x.users
    if x.opcode == "compare":
        return user.opcode == "and" and not user.op_name and _is_of_bounds(user)
    return user.opcode in {"bitcast", "broadcast"} and any(
        u.opcode == "select"
        and u.operands[0] is user
        and any(v.opcode == "dynamic-update-slice" and _was_scatter(v) for v in u.users)
        for u in user.users
    )


def _was_scatter(x: Instruction) -> bool:
    return operation(x).split("-")[0] == "scatter"
