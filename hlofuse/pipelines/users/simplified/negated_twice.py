"""What was negated twice, as `exp(-loss)` of a loss that is the negated sum of logarithms."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.holes import last_at


def with_last_in_place_of_second(
    negated: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a `negated` value with the last where the second negation stood, which is gone.

    Who reads that reads the value itself (`HandleNegate`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). Such a reader is younger than the first
    negation though post-order, by which the program was numbered, would come to it earlier now. `order` is
    that.
    """
    if negated.opcode != "negate" or not is_of_program(negated):
        return users
    call = outermost_call(negated)
    readers = [
        u.id
        for u in negated.operands[0].users
        if order[u] < order[negated]
        and u.id > negated.id
        and len(u.operands) == 1
        and is_of_program(u)
        and outermost_call(u) == call
    ]
    return last_at(users, sum(u.id < readers[0] for u in users)) if len(readers) == 1 else users
