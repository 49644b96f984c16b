"""Reductions over dimensions of one, which give back what they reduce.

`(max(x, keepdims=True) + x) * sum(x, keepdims=True)` becomes `(x + x) * x`.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, stack_frame
from hlofuse.pipelines.users.common.holes import last_at


def with_last_in_place_of_degenerate(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer`, the last in the place of such a reduction that another read with it.

    AlgebraicSimplifier (`HandleReduce`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes it a
    reshape, and one with that back to the dimensions of `producer` nothing. A program may have `x + x`
    itself: the last, which reads both and is written elsewhere, tells of the reduction.
    """
    *others, last = users
    if not producer.shape.is_array or 1 not in producer.shape.dimensions or producer not in last.operands:
        return users
    for k, u in enumerate(others):
        is_twice = u.opcode == "add" and u.operands == [producer, producer] and is_of_program(u)
        if is_twice and u in last.operands and last.shape.is_array and stack_frame(u) != stack_frame(last):
            return last_at(users, k)
    return users
