"""The order of an instruction's users, as far as it can be told.

XLA appends a user when it is made, or when a pass gives it another operand, and puts the last one
where one was taken out. A text is in post-order,
and so are the lists a reader builds from it, which is nearly always what XLA has: the passes that
gave out operands last (layout assignment, simplification, CSE) went in that order. What follows are
the exceptions that ids, or what an instruction is, give away.
"""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.split_reductions import with_split_reductions_behind
from hlofuse.pipelines.swapped_converts import with_swapped_behind
from hlofuse.pipelines.visits import Uses, uses_in_order
from hlofuse.pipelines.widened import is_inserted_convert, is_narrowing, users_of_widened, widened

_NUMBERS = re.compile(r"(\.\d+)+$")


def restore_users(module: Module, *, ids_known: bool) -> None:
    """Put the users of every instruction outside of fusions into their likely order."""
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        uses, wide = uses_in_order(computation), widened(computation)
        for instruction in computation:
            if len(instruction.users) > 1:
                instruction.users[:] = _likely(instruction, instruction.users, uses, wide, ids_known)


def _likely(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    ids_known: bool,
) -> list[Instruction]:
    # Fusions that are there already were made last, around operations that had been there before.
    users = [u for u in users if u.opcode != "fusion"] + [u for u in users if u.opcode == "fusion"]
    if is_inserted_convert(producer) and not is_narrowing(producer):
        # Every user got one of its own; CSE made them one, in the order of the walk.
        return sorted(users, key=lambda user: uses[producer, user])
    if producer in wide:
        users = users_of_widened(producer, users, uses, wide)
    users = with_split_reductions_behind(with_swapped_behind(users))
    if not ids_known:
        return users
    if producer.opcode == "slice":
        # Seen in records, on every device; which pass keeps this order we do not know.
        return sorted(users, key=_age_in_program)
    if producer.opcode == "broadcast" and _made_together(producer, users):
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


def _age_in_program(user: Instruction) -> int:
    """That of what an inserted convert serves, where it is one."""
    if is_inserted_convert(user) and not is_narrowing(user):
        return min((u.id for u in user.users), default=user.id)
    return user.id
