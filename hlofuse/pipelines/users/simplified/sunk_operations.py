"""Operations on what was sunk itself: all were made anew in front of one broadcast."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.sunk_broadcasts import was_sunk


def are_sunk(producer: Instruction, users: list[Instruction]) -> bool:
    """Does nothing but its own broadcast, and what was sunk since, read `producer`?"""
    own = _own_broadcast(producer, users)
    others = [u for u in users if u is not own and is_elementwise(u) and u.opcode != "convert"]
    return own is not None and len(others) == len(users) - 1 and all(was_sunk(u, own) for u in others)


def with_own_broadcast_in_front(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of what was sunk: it was made with a broadcast, in front of which the others were made then.

    `TryToSinkBroadcastAfterOpWithUniqueNonScalarOperand` (`algebraic_simplifier.cc`).
    """
    own = _own_broadcast(producer, users)
    return [*(u for u in users if u is own), *(u for u in users if u is not own)]


def _own_broadcast(producer: Instruction, users: list[Instruction]) -> Instruction | None:
    if not is_elementwise(producer):
        return None
    own = [u for u in users if u.opcode == "broadcast" and u.op_name and not is_of_program(u)]
    return own[0] if len(own) == 1 else None
