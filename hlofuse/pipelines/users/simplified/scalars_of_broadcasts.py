"""Scalars that the program computes as arrays, until the broadcasts were moved behind what computes them."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.ages import was_division, was_subtraction
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_broadcast(
    number: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a scalar, of which the first had been the broadcast that was made with it.

    AlgebraicSimplifier computes with what is broadcast instead of the broadcasts and broadcasts the result
    (`TryToSinkBroadcastAfterElementwiseOps`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). What
    read that broadcast reads the scalar since, in post-order, `order`: if it is a broadcast itself, it became
    one with that. The last of them took the place of the first broadcast.
    """
    if number.shape.rank or number.opcode not in ELEMENTWISE_OPCODES or not is_of_program(number):
        return users
    if not any(u.id == number.id + 1 and _is_simplified(u) for u in users):
        return users
    if not any(u.opcode == "broadcast" and not is_of_program(u) for u in users):
        return users
    return last_in_front(sorted(users, key=order.__getitem__))


def _is_simplified(x: Instruction) -> bool:
    """Did simplification make this scalar, and so what has the id before as well?"""
    if x.shape.rank:
        return False
    return was_division(x) or was_subtraction(x)
