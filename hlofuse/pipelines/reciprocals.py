"""Divisions by a constant that became multiplications by its reciprocal, which CSE made one for all of them."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.constants import is_broadcast_of_constant
from hlofuse.pipelines.names import is_made_by_pass, name_before_renaming


def with_last_for_first_product(reciprocal: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of the reciprocal that was kept, by age: the last in front if its own product is not among them.

    Simplification makes the product right behind the reciprocal (`HandleDivide`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and CSE keeps the first reciprocal. If the oldest
    user was made with another one, ReshapeMover or the like has taken the kept one's own product elsewhere since,
    and the last user took its place. Ids have to be XLA's.
    """
    if not is_broadcast_of_constant(reciprocal) or not all(map(_is_product_made_by_pass, users)):
        return users
    if not is_made_by_pass(reciprocal) or min(u.id for u in users) <= reciprocal.id + 1:
        return users
    return [users[-1], *users[:-1]]


def _is_product_made_by_pass(x: Instruction) -> bool:
    return x.opcode == "multiply" == name_before_renaming(x).root and is_made_by_pass(x)
