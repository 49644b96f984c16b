"""Operations that were computed in front of a reshape, and that the program reshaped back."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.holes import last_in_front


def with_reduction_in_front(moved: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of what ReshapeMover made anew, older than it, and of a younger reduction. Ids have to be
    XLA's.

    AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes a reduction of what
    is reshaped one of the value (`HandleReduce`), which took the place of the reshape. The one back went
    before that: its users were appended, and the last of them took its place (`HandleReshape`). One of what
    is negated there, of which it makes the negated sum, came behind all others. What is younger than a user
    because it was inlined is older than the first of `passes`.
    """
    if moved.id < passes or moved.opcode not in ELEMENTWISE_OPCODES or not is_of_program(moved):
        return users
    older = [u for u in users if u.id < moved.id]
    younger = [u for u in users if u not in older]
    if not older or len(younger) != 1 or younger[0].opcode != "reduce":
        return users
    if any(u.opcode == "negate" for u in older):
        return users
    return [*younger, *last_in_front(older)]
