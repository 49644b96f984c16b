"""Broadcasts that the framework made for one operation each, of which CSE kept one for several."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def with_own_user_first(broadcast: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `broadcast`, given that it was made for one of them, which has the next number.

    HloCSE (`xla/service/hlo_cse.cc`) keeps the broadcast that its walk meets first, and appends the users of
    those equal to it.
    """
    if broadcast.opcode != "broadcast":
        return users
    return sorted(users, key=lambda u: not _is_made_with(u, broadcast))


def _is_made_with(user: Instruction, broadcast: Instruction) -> bool:
    own, name = name_before_renaming(broadcast), name_before_renaming(user)
    return user.op_name == broadcast.op_name and name == (own.root, own.number + 1)
