"""Broadcasts of numbers that a program compares with and gives `where` to choose, as in `where(x < 0, 0, y)`.

The function reads what it is given: the call was a user of the broadcast, among those of the program.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.holes import without

_CHOICE = "jit(_where)"
_SPREADS_WITHIN = ("transpose(", "vmap(")


def is_given_to_choice(literal: Instruction, reader: Instruction) -> bool:
    """Is it chosen by `where`, which was given zeros of the shape of what it chooses from?

    That is written in front of the other value; a number behind, or beside one, `where` spreads itself. So
    does a derivative, and what is batched: the number is the same for all in the batch.
    """
    if literal.op_name or not literal.shape.rank or reader.opcode != "select":
        return False
    _, chosen, other = reader.operands
    if chosen is not literal or other.opcode == "broadcast" or not outermost_call(reader).endswith(_CHOICE):
        return False
    return not any(name in (reader.op_name or "") for name in _SPREADS_WITHIN)


def with_comparisons_gone(literal: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a broadcast, given that several places wrote the comparison for their own choice.

    HloCSE (`xla/service/hlo_cse.cc`) kept the first; the last user took the place of the others, in front of
    the choice.
    """
    listed: list[tuple[Instruction, bool]] = []
    for user in users:
        if is_given_to_choice(literal, user) and _had_own_comparison(user, literal):
            listed.append((user, True))
        listed.append((user, False))
    return [u for u, _ in without(listed, [entry for entry in listed if entry[1]])]


def _had_own_comparison(choice: Instruction, literal: Instruction) -> bool:
    comparison = choice.operands[0]
    if comparison.opcode != "compare" or literal not in comparison.operands:
        return False
    here, there = extent_of(choice), extent_of(comparison)
    return here is not None and there is not None and here.context != there.context
