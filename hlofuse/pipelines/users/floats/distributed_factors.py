"""Sums of products with one number that became the product of a sum.

AlgebraicSimplifier makes `(a + b) * c` of `a * c + b * c` (`HandleAdd`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The sum comes behind all users of `a` and of `b`,
and as the products go, which nobody else reads, it takes their places. It bears the name of the first.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.floats.inserted_converts import is_widening


def is_sum_of_factors(x: Instruction) -> bool:
    """Is it such a sum of what was squared, in the derivative of that?

    One of other products is not told from what else a pass made and named after one of the program.
    """
    if x.opcode != "add" or is_of_program(x) or not is_of_derivative(x):
        return False
    return operation(x) in {"mul", "broadcast_in_dim"} and all(map(_is_squared, x.operands))


def _is_squared(x: Instruction) -> bool:
    return any(u.opcode == "multiply" and u.operands[0] is u.operands[1] for u in x.users)


def merged_beside_sum(x: Instruction) -> list[Instruction]:
    """Those users of `x`, which was made wide, that read its product with one number as yet when it was.

    `(x * c) * d` became `x * (c * d)` (`HandleMultiply`) before the sum came.
    """
    made_wide = max((o.id for o in x.operands if is_widening(o)), default=None)
    if made_wide is None or not any(map(is_sum_of_factors, x.users)):
        return []
    return [
        u
        for u in x.users
        if u.opcode == "multiply"
        and u.id > made_wide
        and not is_of_program(u)
        and any(map(_is_number, u.operands))
    ]


def _is_number(x: Instruction) -> bool:
    """Is it one for all elements?"""
    return x.opcode == "broadcast" and not x.dimensions
