"""Predicates that were spread anew for every select, as the framework does where it batches a condition.

HloCSE (`xla/service/hlo_cse.cc`) kept the first, and gave it the users of the others as it met these.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_called, is_of_derivative, is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.visits import Uses


def with_selects_where_met(predicate: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of such a `predicate`: a walk comes to it ahead of what is chosen from.

    A function that chooses, such as `where`, spreads it once, for its derivative as well.
    """
    if predicate.opcode != "broadcast" or is_constant(predicate) or is_of_called(predicate):
        return users
    if operation(predicate) != "broadcast_in_dim":
        return users
    if any(u.opcode != "select" or u.operands[0] is not predicate for u in users):
        return users
    if _are_of_one_choice(users):
        return users
    return sorted(users, key=lambda u: uses[predicate, u])


def _are_of_one_choice(users: list[Instruction]) -> bool:
    """Are they a choice of the program and its derivative, which chooses by what was spread for that?"""
    if len({stack_frame(u) for u in users}) > 1 or not all(map(is_of_program, users)):
        return False
    return {is_of_derivative(u) for u in users} == {False, True}
