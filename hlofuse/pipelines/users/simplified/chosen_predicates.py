"""Choices of the larger or the smaller of two predicates, as an argmax of predicates makes them."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation

_COMPARED = {"or": ("GT", "GE"), "and": ("LT", "LE")}


def with_chosen_behind_comparison(predicate: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `predicate` with what became of such a choice behind the comparison that it chose by.

    AlgebraicSimplifier (`HandleSelect`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) puts an
    `or` or an `and` of both in the place of the choice, which does not read the comparison any more.
    """
    if predicate.shape.element_type != "pred":
        return users
    for chosen in [u for u in users if operation(u) == "select_n" and u.opcode in _COMPARED]:
        compared = next((u for u in users if _is_of_choice(u, chosen)), None)
        if compared is not None and users.index(chosen) < users.index(compared):
            users = [u for u in users if u is not chosen]
            users.insert(users.index(compared) + 1, chosen)
    return users


def _is_of_choice(x: Instruction, chosen: Instruction) -> bool:
    if x.opcode != "compare" or x.operands != chosen.operands:
        return False
    return x.attributes.raw("direction") in _COMPARED[chosen.opcode]
