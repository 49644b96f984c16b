"""Scalars that the program computes as arrays, until the broadcasts were moved behind what computes them."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.ages import was_division


def with_broadcast_in_front(number: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a scalar with the broadcast in front, which was made with it.

    AlgebraicSimplifier computes with what is broadcast instead of the broadcasts and broadcasts the result
    (`TryToSinkBroadcastAfterElementwiseOps`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). What reads that goes the same way and comes
    behind. If the broadcast became one with another, that took the place of it.
    """
    if number.shape.rank or number.opcode not in ELEMENTWISE_OPCODES or not is_of_program(number):
        return users
    if not any(u.id == number.id + 1 and _is_simplified(u) for u in users):
        return users
    broadcasts = [u for u in users if u.opcode == "broadcast" and not is_of_program(u)]
    return [*broadcasts, *(u for u in users if u not in broadcasts)]


def _is_simplified(x: Instruction) -> bool:
    """Did simplification make this scalar, and so what has the id before as well?"""
    if x.shape.rank:
        return False
    return was_division(x) or (x.opcode == "add" and operation(x) == "sub")
