"""Words of a key that one call computes and others read, each through a reshape of its own.

A call takes the words out of the key and reshapes them; of the key that another call put together,
AlgebraicSimplifier leaves the words (`HandleSlice`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). HloCSE (`xla/service/hlo_cse.cc`) keeps the reshape
that its walk meets first, and appends the users of the others. What joins both words is of the first call, as
there is the like of it in each.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program


def in_order_of_reading_calls(word: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a word, each call's by age; ids have to be XLA's."""
    if word.opcode != "bitcast" or word.shape.rank or word.shape.element_type != "u32":
        return users
    joined = [u for u in users if u.opcode == "xor"]
    if len(joined) != 1 or not is_of_program(word.operands[0]):
        return users
    calls: dict[str, list[Instruction]] = {}
    for u in sorted(users, key=lambda u: u.id):
        calls.setdefault(outermost_call(u), []).append(u)
    first = calls.pop(outermost_call(joined[0]))
    around = outermost_call(word.operands[0])
    if not calls or "" in calls or around in ("", *calls, outermost_call(joined[0])):
        return users
    if any(len(own) != 1 or own[0].opcode != "broadcast" for own in calls.values()):
        return users
    return [*first, *(u for own in calls.values() for u in own)]
