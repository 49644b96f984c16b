"""Reductions of which the result was reshaped (keepdims) before it was used."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_call, is_of_program


def with_moved_in_front(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a reduction with the last one in front, if ReshapeMover made that.

    It moves the reshape behind an element-wise operation, which reads the reduction then
    (`xla/hlo/transforms/simplifiers/reshape_mover.cc`). The reshape, the only user before, goes and the
    last user takes its place. Ids have to be XLA's.
    """
    if len(users) < 2:
        return users
    if producer.opcode == "reduce" and not is_made_by_pass(producer) and all(map(is_made_by_pass, users)):
        *others, last = sorted(users, key=lambda u: u.id)
        return [last, *others] if _is_moved(last) else users
    moved = sorted((u for u in users if _is_moved(u)), key=lambda u: u.id)
    if len(moved) < 2 or producer.opcode in {"broadcast", "reduce"} or any(map(_is_reshape, users)):
        return users
    place = users.index(next(u for u in users if u in moved))
    others = [u for u in users if u not in moved]
    return [*others[:place], moved[-1], *others[place:], *moved[:-1]]


def _is_moved(x: Instruction) -> bool:
    return x.opcode in ELEMENTWISE_OPCODES and is_of_program(x) and is_made_by_pass(x) and not is_of_call(x)


def _is_reshape(x: Instruction) -> bool:
    return x.opcode == "bitcast"
