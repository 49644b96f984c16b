"""Reductions over dimensions of one, which give back what they reduce.

In `max(x, keepdims=True) + x` that leaves `x + x`.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, stack_frame
from hlofuse.pipelines.users.common.holes import last_at


def with_last_in_place_of_degenerate(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer`, the last in the place of such a reduction that another read with it.

    AlgebraicSimplifier (`HandleReduce`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes it a
    reshape, and one with that back to the dimensions of `producer` nothing.
    """
    if not producer.shape.is_array or 1 not in producer.shape.dimensions:
        return users
    for u in users:
        if u.opcode in {"add", "subtract"} and u.operands == [producer, producer] and is_of_program(u):
            return users if _is_of_rolled(producer, u) else last_at(users, users.index(u))
    return users


def _is_of_rolled(x: Instruction, twice: Instruction) -> bool:
    """Was it `roll(x, 1) + roll(x, -1) + x`? Each roll is a call, and gives back such an `x`."""
    return any(x in v.operands and stack_frame(v) == stack_frame(twice) for v in twice.users)
