"""Reductions of which the result was reshaped (keepdims) before it was used."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_program


def with_moved_in_front(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a reduction with the last one in front, if ReshapeMover made that.

    It moves the reshape behind an element-wise operation, which reads the reduction then
    (`xla/hlo/transforms/simplifiers/reshape_mover.cc`). The reshape, the only user before, goes and the
    last user takes its place. Ids have to be XLA's.
    """
    if producer.opcode != "reduce" or is_made_by_pass(producer) or len(users) < 2:
        return users
    if not all(is_made_by_pass(u) for u in users):
        return users
    *others, last = sorted(users, key=lambda u: u.id)
    return [last, *others] if last.opcode in ELEMENTWISE_OPCODES and is_of_program(last) else users
