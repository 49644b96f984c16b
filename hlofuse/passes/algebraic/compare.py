"""Comparisons (`HandleCompare`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.facts import is_all, is_integral, is_non_negative
from hlofuse.passes.common import make


def handle_compare(c: Context, compare: Instruction) -> None:
    lhs, rhs = compare.operands
    direction = compare.attributes.raw("direction")
    known = _known(lhs, rhs, direction)
    if known is not None:
        c.replace(compare, make.scalar_like(compare, known))
        return
    if lhs.shape.element_type == "pred" == rhs.shape.element_type and direction in ("NE", "EQ"):
        for constant, other in ((rhs, lhs), (lhs, rhs)):
            if is_all(constant, direction == "EQ"):
                c.replace(compare, other)
                return
    if direction == "NE" and is_all(rhs, 0) and lhs.opcode == "select":
        condition, yes, no = lhs.operands
        if (
            condition.opcode == "compare"
            and condition.attributes.raw("direction") == "GE"
            and is_all(yes, 1)
            and is_all(no, 0)
            and c.same_shape(compare.shape, condition.shape)
        ):
            c.replace(compare, condition)
            return
    if direction != "GT":
        return
    for side, opcode in ((0, "maximum"), (1, "minimum")):
        extreme, other = compare.operands[side], compare.operands[1 - side]
        if extreme.opcode != opcode:
            continue
        if other in extreme.operands:
            rest = extreme.operands[1] if other is extreme.operands[0] else extreme.operands[0]
            compare.replace_operand(side, rest)
            c.changed = True
        return


def _known(lhs: Instruction, rhs: Instruction, direction: str | None) -> bool | None:
    """The answer, if it does not depend on the values."""
    unsigned = lhs.shape.element_type[0] == "u" or lhs.shape.element_type == "pred"
    if direction in ("LT", "GE") and is_all(rhs, 0) and (unsigned or is_non_negative(lhs)):
        return direction == "GE"
    if direction in ("GT", "LE") and is_all(lhs, 0) and (unsigned or is_non_negative(rhs)):
        return direction == "LE"
    if lhs is rhs and is_integral(lhs):
        return direction in ("EQ", "GE", "LE")
    return None
