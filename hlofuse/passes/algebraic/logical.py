"""And, or, exclusive or, not (`HandleAnd`, `HandleOr`, `HandleXor`, `HandleNot`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.analysis.expensive import is_constant_effective_scalar
from hlofuse.analysis.structural_key import StructuralKeys
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.facts import is_all
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of


def handle_and(c: Context, x: Instruction) -> None:
    lhs, rhs = x.operands
    if lhs.shape.element_type == "pred" == rhs.shape.element_type:
        for constant, other in ((rhs, lhs), (lhs, rhs)):
            if is_all(constant, 1) and c.replace_if_compatible(x, other):
                return
    for constant in (rhs, lhs):
        if is_all(constant, 0) and c.replace_if_compatible(x, constant):
            return
    left, right = _upper_bound(lhs), _upper_bound(rhs)
    if left is not None and right is not None and left[0] is right[0]:
        bound = make.scalar_like(left[0], min(left[1], right[1]))
        c.replace(x, make.compare(x, "LT", left[0], bound))


def _upper_bound(x: Instruction) -> tuple[Instruction, int] | None:
    """The variable and the number of `variable < number`."""
    if x.opcode != "compare":
        return None
    a, b = x.operands
    if x.attributes.raw("direction") == "GT":
        a, b = b, a
    elif x.attributes.raw("direction") != "LT":
        return None
    value = scalar_of(b) if is_constant_effective_scalar(b) and b.shape.element_type == "s32" else None
    return (a, int(value)) if value is not None else None


def handle_or(c: Context, x: Instruction) -> None:
    lhs, rhs = x.operands
    if lhs.shape.element_type == "pred" == rhs.shape.element_type:
        for constant in (rhs, lhs):
            if is_all(constant, 1) and c.replace_if_compatible(x, constant):
                return
    for constant, other in ((rhs, lhs), (lhs, rhs)):
        if is_all(constant, 0) and c.replace_if_compatible(x, other):
            return


def handle_xor(c: Context, x: Instruction) -> None:
    lhs, rhs = x.operands
    keys = StructuralKeys()
    if lhs is rhs or (
        not has_side_effect(lhs)
        and lhs.operands
        and lhs.operands == rhs.operands
        and keys.of_instruction(lhs) == keys.of_instruction(rhs)
    ):
        c.replace(x, make.scalar_like(x, 0))
        return
    for constant, other in ((rhs, lhs), (lhs, rhs)):
        if is_all(constant, 0) and c.replace_if_compatible(x, other):
            return


def handle_not(c: Context, x: Instruction) -> None:
    inner = x.operands[0]
    if inner.opcode == "not":
        c.replace_if_compatible(x, inner.operands[0])
