"""Infinities that the derivative of `logaddexp` takes out of its operands and its result."""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_call
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import last_at, without


def with_infinities_merged(
    zero: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of the zeros put in their place, given that the framework did so anew for every difference.

    HloCSE (`xla/service/hlo_cse.cc`) kept the first of equal ones, and the last user took the place of each
    other one. Where the call of a function had been the user, the last of all stood in place of that.
    """
    if len(users) < 2 or not is_broadcast_of_constant(zero):
        return users
    replaced = [u for u in users if _is_replaced(u, zero)]
    uses = [(u, difference) for u in replaced for difference in set(u.users)]
    if any(operation(difference) != "sub" for _, difference in uses):
        return users
    uses.sort(key=lambda use: (order[use[1]], use[1].operands.index(use[0])))
    kept: dict[Instruction, tuple[Instruction, Instruction]] = {}
    gone = [use for use in uses if kept.setdefault(use[0], use) != use]
    listed = [(u, u) for u in users]
    for use in gone:
        place = next(
            (k for k, (_, reader) in enumerate(listed) if order[reader] > order[use[1]]), len(listed)
        )
        listed.insert(place, use)
    if (gone or replaced == users) and all(map(is_of_call, users)):
        listed = last_at(listed, users.index(replaced[0]))
    return [u for u, _ in without(listed, gone)]


def _is_replaced(user: Instruction, zero: Instruction) -> bool:
    """Is it `select(x == inf, 0, x)`?"""
    if user.opcode != "select" or user.operands[1] is not zero:
        return False
    infinite, _, x = user.operands
    return infinite.opcode == "compare" and operation(infinite) == "eq" and infinite.operands[0] is x
