"""Products with two numbers, one after the other, that became one product.

AlgebraicSimplifier makes `x * (c * d)` of `(x * c) * d` (`HandleMultiply`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The new product comes behind all users of `x`;
where nobody else reads `x * c` that goes, and leaves it its place.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.constants import is_broadcast_of_constant


def with_merged_factors_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """Such products of `producer` behind, where the product with one of the numbers is still there."""
    merged = {u: None for u in users if has_merged_factor(u)}
    if (
        is_broadcast_of_constant(producer)
        or not merged
        or not any(_has_factor(u) for u in users if u not in merged)
    ):
        return users
    return [*(u for u in users if u not in merged), *merged]


def has_merged_factor(x: Instruction) -> bool:
    """A product of the program with a number that a pass made and named after the product."""
    if x.opcode != "multiply":
        return False
    factor = next((o for o in x.operands if is_broadcast_of_constant(o)), None)
    if factor is None or operation(factor) != operation(x):
        return False
    return is_of_program(x) and not is_of_program(factor)


def _has_factor(x: Instruction) -> bool:
    return x.opcode == "multiply" and any(map(is_broadcast_of_constant, x.operands))
