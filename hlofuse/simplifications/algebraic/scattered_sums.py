"""A sum with the result of a scatter that adds, made one scatter into the sum (end of `HandleAdd`)."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.simplifications.algebraic.context import Context
from hlofuse.simplifications.algebraic.functions import is_of_parameters
from hlofuse.simplifications.common import make


def sum_of_scatters(c: Context, add: Instruction) -> None:
    """Two scatters are left alone: whether XLA joins them depends on more than is worked out here."""
    lhs, rhs = add.operands
    left, right = _adds_into(lhs), _adds_into(rhs)
    if left == right:
        return
    scatter, other = (rhs, lhs) if right else (lhs, rhs)
    base = scatter.operands[0]
    operands = (other, base) if right else (base, other)
    scatter.replace_operand(0, make.binary(add, "add", *operands))
    c.replace(add, scatter)


def _adds_into(x: Instruction) -> bool:
    if x.opcode != "scatter" or len(x.operands) != 3 or len(x.users) != 1:
        return False
    if x.users[0].operands.count(x) != 1:
        return False
    return is_of_parameters(x.called_computations[0], "add")
