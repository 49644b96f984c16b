"""The order of an instruction's users, as far as it can be told from their ids.

XLA appends a user when it is made, or when a pass gives it another operand. A text is in post-order,
and so are the lists a reader builds from it, which is nearly always what XLA has: the passes that
gave out operands last (layout assignment, simplification, CSE) went in that order. What follows are
the exceptions that ids, or what an instruction is, give away.
"""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module

_NUMBERS = re.compile(r"(\.\d+)+$")


def restore_users(module: Module, *, ids_known: bool) -> None:
    """Put the users of every instruction outside of fusions into their likely order."""
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        for instruction in computation:
            if len(instruction.users) > 1:
                instruction.users[:] = _likely(instruction, instruction.users, ids_known)


def _likely(producer: Instruction, users: list[Instruction], ids_known: bool) -> list[Instruction]:
    # Fusions that are there already were made last, around operations that had been there before.
    users = [u for u in users if u.opcode != "fusion"] + [u for u in users if u.opcode == "fusion"]
    if not ids_known:
        return users
    if producer.opcode == "slice" or (producer.opcode == "broadcast" and _made_together(producer, users)):
        return sorted(users, key=_age)
    for square in [u for u in users if u.opcode == "multiply" and u.operands == [producer, producer]]:
        # Simplification made it of a power, so that it comes behind all that are older.
        others = [u for u in users if u is not square]
        older = max((k for k, u in enumerate(others) if u.id < square.id), default=-1)
        place = max(older + 1, users.index(square))
        users = [*others[:place], square, *others[place:]]
    return users


def _made_together(broadcast: Instruction, users: list[Instruction]) -> bool:
    """The users were made one after the other, right behind the broadcast or by one pass for it."""
    if all(_root(u) == "multiply" == u.opcode for u in users):
        return True  # division by a constant became multiplication
    ids = [u.id for u in users]
    return min(ids) > broadcast.id and max(ids) - broadcast.id == len(ids)


def _root(instruction: Instruction) -> str:
    """The name without its numbers."""
    return _NUMBERS.sub("", instruction.name)


def _age(instruction: Instruction) -> int:
    return instruction.id
