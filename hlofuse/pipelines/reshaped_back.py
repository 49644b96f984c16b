"""Sums of which the result was reshaped and reshaped back.

The derivative of `x + b` with a `b` of fewer dimensions sums to the shape `b` was broadcast from, with
dimensions of size one, and then sums those away. AlgebraicSimplifier makes a reshape of the second sum, one
of the two reshapes, and in its next round drops that: who had read it is appended to the users of the first
sum, and the last takes the place of the reshape (`HandleReduce`, `HandleReshape`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_program, operation


def with_last_in_place_of_reshape_back(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer`, the last of them in front if it is such a sum and they are the program's."""
    if producer.opcode != "reduce" or operation(producer) != "reduce_sum":
        return users
    if "transpose(" not in (producer.op_name or "") or not is_of_program(producer):
        return users
    if not all(is_of_program(u) and not is_made_by_pass(u) for u in users):
        return users
    return [*users[-1:], *users[:-1]]
