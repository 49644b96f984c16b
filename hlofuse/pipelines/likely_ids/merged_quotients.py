"""Quotients of a product and a number that became one product in two rounds of simplification.

The first time around AlgebraicSimplifier makes of (x * a) / b a product with the inverse of b, and merges the
two numbers only when it meets that one (`HandleDivide` and `HandleMultiply` of
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The broadcast for both is made for the quotient and
bears its name, and what is made of two constants bears none. The derivative of a mean of squares has the
quotient first, and is spread to as many elements as it divides by.
"""

from __future__ import annotations

from math import sqrt

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
    if x.opcode != "multiply" or name_before_renaming(x).root != x.opcode:
        return False
    match operation(x):
        case "div":
            return any(_is_made_for(o, x) and not _is_inverse(o) for o in x.operands)
        case "mul":
            return any(_is_made_for(o, x) and _is_shared_among(o, x) for o in x.operands)
    return False


def behind_quotients(order: list[Instruction]) -> list[Instruction]:
    """The `order` of one round, with products that were of a quotient, (x / a) * b, behind that.

    They read x since then; the quotient is still read by others.
    """
    place = {x: (k, 0) for k, x in enumerate(order)}
    for x in order:
        for read in x.operands if x.opcode == "multiply" and operation(x) == "mul" else ():
            quotients = [u for u in read.users if u in place and _is_quotient_in(u, x)]
            if quotients:
                last = max(place[u][0] for u in quotients)
                own = [
                    o for o in x.operands if o in place and is_broadcast_of_constant(o) and len(o.users) == 1
                ]
                for k, y in enumerate((*own, x), 1):
                    place[y] = max(place[y], (last, k))
    return sorted(order, key=place.__getitem__)


def _is_quotient_in(quotient: Instruction, product: Instruction) -> bool:
    if quotient.opcode != "multiply" or operation(quotient) != "div":
        return False
    if any(_is_zero(o) for o in product.operands):
        return True
    whole, part = (next(filter(None, map(number_of, x.operands)), 0.0) for x in (product, quotient))
    return bool(whole and part) and _length(whole / part) < _length(whole)


def _is_zero(x: Instruction) -> bool:
    return is_broadcast_of_constant(x) and not x.operands[0].literal.scalar


def _is_made_for(factor: Instruction, product: Instruction) -> bool:
    return (
        is_broadcast_of_constant(factor)
        and factor.op_name == product.op_name
        and not factor.operands[0].op_name
    )


def _is_shared_among(broadcast: Instruction, product: Instruction) -> bool:
    """Is the number a shorter one, divided by how many elements each of the `product` is spread to?"""
    spread = next((u for u in _through_reshape(product) if u.opcode == "broadcast"), None)
    value = number_of(broadcast)
    if spread is None or value is None or not product.shape.element_count:
        return False
    whole = value * (spread.shape.element_count // product.shape.element_count)
    return name_before_renaming(broadcast).root == "broadcast" and _length(whole) < _length(value)


def _through_reshape(x: Instruction) -> list[Instruction]:
    return [v for u in x.users for v in (u.users if u.opcode == "bitcast" else [u])]


def _length(value: float) -> int:
    """How many digits tell it from its neighbours."""
    written = f"{value:.{_DIGITS}e}".partition("e")[0]
    return len(written.replace(".", "").rstrip("0"))


def _is_inverse(broadcast: Instruction) -> bool:
    """May it be the inverse of one number that somebody wrote, or of the root of one?"""
    value = number_of(broadcast)
    if not value:
        return True
    root = sqrt(float(f"{1 / value**2:.{_DIGITS}g}"))
    written = (in_single_precision(x) for x in (float(f"{1 / value:.{_DIGITS}g}"), root))
    return any(x is None or in_single_precision(1 / x) == value for x in written)
