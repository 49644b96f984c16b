"""Broadcasts of numbers that were made for operations ReshapeMover moved.

ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) makes all operations it moves anew, one after
the other, and puts one reshape behind a broadcast that several of them read. AlgebraicSimplifier makes
another broadcast of that (`HandleBroadcast`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), which
is younger than what reads it. HloCSE appends whatever read the like of it.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction


def with_moved_readers_in_front(
    literal: Instruction, users: list[Instruction], passes: int
) -> list[Instruction]:
    """The `users` of the `literal` with those in front that were moved with the first.

    `passes` is the first id that a pass gave.
    """
    first = users[0]
    if literal.computation is None or not passes <= first.id < literal.id:
        return users
    here = (u for u in users if u.computation is literal.computation)  # others are in fusions already
    older = [u for u in here if passes <= u.id < literal.id]
    if len(older) < 2:
        return users
    others = [x.id for x in literal.computation if x.opcode not in ELEMENTWISE_OPCODES]
    start = max((k for k in others if k < first.id), default=-1)
    end = min(k for k in others if k > first.id)
    moved = {u for u in older if start < u.id < end}
    return [*(u for u in users if u in moved), *(u for u in users if u not in moved)]
