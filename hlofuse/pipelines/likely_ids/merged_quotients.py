"""Quotients of a product and a number that became one product in two rounds of simplification.

The first time around AlgebraicSimplifier makes of (x * a) / b a product with the inverse of b, and merges the
two numbers only when it meets that one (`HandleDivide` and `HandleMultiply` of
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The broadcast for both is made for the quotient and
bears its name, and what is made of two constants bears none.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, operation
from hlofuse.pipelines.users.common.constants import in_single_precision, number_of

_DIGITS = 6
"""Nobody writes numbers with more of them."""


def is_of_merged_quotient(x: Instruction) -> bool:
    """Is it such a product, or the broadcast for it?"""
    if x.opcode == "broadcast":
        return any(x in u.operands and is_of_merged_quotient(u) for u in x.users if u.opcode == "multiply")
    return (
        x.opcode == "multiply"
        and operation(x) == "div"
        and name_before_renaming(x).root == x.opcode
        and any(_is_merged(o, x) for o in x.operands)
    )


def _is_merged(factor: Instruction, product: Instruction) -> bool:
    return (
        is_broadcast_of_constant(factor)
        and factor.op_name == product.op_name
        and not factor.operands[0].op_name
        and not _is_inverse(factor)
    )


def _is_inverse(broadcast: Instruction) -> bool:
    """May it be the inverse of one number that somebody wrote?"""
    value = number_of(broadcast)
    if not value:
        return True
    written = in_single_precision(float(f"{1 / value:.{_DIGITS}g}"))
    return written is None or in_single_precision(1 / written) == value
