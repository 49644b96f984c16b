"""Broadcasts of constants that a pass made in one round, merged with those of another."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.ages import is_sign_of_remainder, was_division, was_subtraction
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert
from hlofuse.pipelines.users.simplified.merged_factors import has_merged_factor


def with_those_of_its_round_in_front(
    constant: Instruction, users: list[Instruction], passes: int
) -> list[Instruction]:
    """The users of such a broadcast: those of the round of the first one come before those of another.

    ReshapeMover and AlgebraicSimplifier take turns. What was moved in one round reads a broadcast made at its
    end, younger than it is itself; what is younger than the broadcast was moved later, and read another until
    HloCSE made one of both (`xla/service/hlo_cse.cc`). A factor that simplification made of two comes right
    ahead of the product it is for, which is of the first round. `passes` is the first id that a pass gave;
    a convert that was put in since stands for who read it then.
    """
    if constant.id < passes or not users or any(map(was_division, users)):
        return users
    if users[0].id == constant.id + 1 and (was_subtraction(users[0]) or _chooses_product(users[0])):
        return users  # the first simplification made it for what it made next
    if is_sign_of_remainder(users[0], constant):  # made in the round of the others like it
        return users
    is_factor = any(u.id == constant.id + 1 and has_merged_factor(u) for u in users)
    later: dict[Instruction, bool] = {}
    is_later = False
    others = [u for u in users if not is_inserted_convert(u)]
    for user in others:
        if user.computation is constant.computation:  # what a fusion took along was where others are
            is_later = user.id > constant.id and not (is_factor and has_merged_factor(user))
            is_later = is_later and not _was_product_with_predicate(user)
        later[user] = is_later
    if not others:
        return users
    first = later[others[0]] and not is_factor
    return sorted(users, key=lambda u: later.get(u, first) != first)


def _was_product_with_predicate(x: Instruction) -> bool:
    """Did the first simplification make it, of a predicate that was multiplied or divided by a number?"""
    return _chooses_product(x) and operation(x) in {"div", "mul"}


def _chooses_product(x: Instruction) -> bool:
    """The same, or was it of a matrix product that became one of elements before?"""
    return x.opcode == "select" and operation(x) in {"div", "dot_general", "mul"} and not is_of_program(x)
