"""Scalars of which several products with numbers are taken, some with a number that is itself a product."""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass


def with_merged_scalars_behind(scalar: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a `scalar`, with products that a pass made behind what is older.

    AlgebraicSimplifier (`HandleMultiply`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes
    `x * (c * d)` of `(x * c) * d`, appended to the users of `x`, where `x * c` has other readers and stays.
    """
    products = [u for u in users if scalar.shape.rank == 0 and _has_number(u)]
    merged = sorted(filter(is_made_by_pass, products), key=lambda u: u.id)
    if not merged or len(merged) == len(products):
        return users
    others = [u for u in users if u not in merged]
    older = [u for u in others if u.id < merged[0].id]
    return [*older, *merged, *(u for u in others if u not in older)]


def _has_number(x: Instruction) -> bool:
    return x.opcode == "multiply" and any(map(is_constant, x.operands))
