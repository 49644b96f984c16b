"""Broadcasts of numbers that a function uses, and functions that are called in it.

The framework makes one such broadcast for each function. HloCSE (`xla/service/hlo_cse.cc`) keeps the first
of equal ones, with the users that it had, and appends those of each other one in turn.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.visits import Uses


def with_those_of_inner_calls_behind(
    literal: Instruction, users: list[Instruction], uses: Uses, passes: int
) -> list[Instruction]:
    """The users of such a broadcast, which bears the name of the function that it was made for.

    What calls in that function brought in read another. Where the walk comes along one of those first it
    would have kept theirs: such a call was given the broadcast.
    """
    if not literal.op_name or not is_broadcast_of_constant(literal):
        return users
    around = f"{literal.op_name}/"
    names = [u.op_name or "" for u in users]
    if not all(name.startswith(around) for name in names):
        return users
    inner = {u for u, name in zip(users, names, strict=True) if "jit(" in name[len(around) :]}
    if min(users, key=lambda u: uses[literal, u]) in inner:
        return users
    own = [u for u in users if u not in inner]
    if inner and all(literal.id < u.id < passes for u in own):
        own.sort(key=lambda u: u.id)
    return [*own, *(u for u in users if u in inner)]
