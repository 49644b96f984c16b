"""Broadcasts of a number that are equal only since what they were for was computed in front of a reshape."""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_program


def with_moved_behind(broadcast: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a broadcast of a number with those behind that ReshapeMover made.

    It reshapes the other operands too (`xla/hlo/transforms/simplifiers/reshape_mover.cc`), and
    AlgebraicSimplifier makes a broadcast of the reshape of one. HloCSE had merged what the program has equal
    by then, and appends the users of the new one when it runs again. Ids have to be XLA's.
    """
    if broadcast.opcode != "broadcast" or is_made_by_pass(broadcast):
        return users
    number = broadcast.operands[0]
    if number.shape.rank or is_constant(number):
        return users
    return sorted(users, key=lambda u: _was_moved(u, broadcast))


def _was_moved(user: Instruction, broadcast: Instruction) -> bool:
    if user.opcode not in ELEMENTWISE_OPCODES or user.id < broadcast.id:
        return False
    return is_made_by_pass(user) and is_of_program(user)
