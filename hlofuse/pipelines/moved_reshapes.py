"""Values that were reshaped (keepdims) before they were used."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.dead_at_cse import UsesAtCse
from hlofuse.pipelines.names import is_made_by_pass, is_of_call, is_of_program


def with_moved_in_front(
    producer: Instruction, users: list[Instruction], at_cse: UsesAtCse
) -> list[Instruction]:
    """The users of `producer`, the last in place of a reshape if ReshapeMover moved that behind some of them.

    Those element-wise operations were made anew, one after the other, on what had been reshaped
    (`xla/hlo/transforms/simplifiers/reshape_mover.cc`). Then the reshape, a user before them, goes and the
    last of all takes its place. Where another reshape is left it is not known which of the two they read.
    Ids have to be XLA's.
    """
    if len(users) < 2:
        return users
    if producer.opcode == "reduce" and not is_made_by_pass(producer) and all(map(is_made_by_pass, users)):
        *others, last = sorted(users, key=lambda u: u.id)
        return [last, *others] if _is_moved(last) else users
    moved = sorted((u for u in users if _is_moved(u) and at_cse.met(u)), key=lambda u: u.id)
    if len(moved) < 2 or producer.opcode in {"broadcast", "reduce"} or any(map(_is_reshape, users)):
        return users
    place = users.index(next(u for u in users if u in moved))
    others = [u for u in users if u not in moved]
    return [*others[:place], moved[-1], *others[place:], *moved[:-1]]


def _is_moved(x: Instruction) -> bool:
    return x.opcode in ELEMENTWISE_OPCODES and is_of_program(x) and is_made_by_pass(x) and not is_of_call(x)


def _is_reshape(x: Instruction) -> bool:
    return x.opcode == "bitcast"
