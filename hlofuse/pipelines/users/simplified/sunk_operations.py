"""Operations on what was sunk itself, or moved: all were made anew in front of broadcasts."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.sunk_broadcasts import was_sunk


def in_order_of_sunk(producer: Instruction, users: list[Instruction]) -> list[Instruction] | None:
    """The users of what was sunk: it was made with a broadcast, in front of which the others were made then.

    `TryToSinkBroadcastAfterOpWithUniqueNonScalarOperand`
    (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). None if anything but its own broadcast, and
    what was sunk since, reads `producer`.
    """
    own = _own_broadcast(producer, users)
    if own is None:
        return None
    others = [u for u in users if u is not own]
    is_sunk = all(is_elementwise(u) and u.opcode != "convert" and was_sunk(u, own) for u in others)
    return [own, *others] if is_sunk else None


def with_sunk_as_made(
    producer: Instruction, users: list[Instruction], moved: frozenset[Instruction]
) -> list[Instruction] | None:
    """The users of what was sunk, or of what ReshapeMover `moved` for one that was sunk since, by age.

    The former has a broadcast made right behind it, and all others since. One of the latter read a broadcast
    until then, and the others a reshape: each goes in its turn and gives up its place. A norm that is
    compared, and divides, row by row is such a value. None if nothing was sunk, or nothing had been there
    before `producer`.
    """
    if _was_sunk_with_broadcast(producer, users):
        return sorted(users, key=lambda u: u.id)
    if (
        producer not in moved
        or not any(map(_was_sunk_alone, users))
        or producer.id < min(u.id for u in users)
    ):
        return None
    return sorted(users, key=lambda u: u.id)


def _was_sunk_with_broadcast(producer: Instruction, users: list[Instruction]) -> bool:
    """Has it a broadcast made right behind it, ahead of all others, which are element-wise?

    Those that are broadcast otherwise were moved by ReshapeMover.
    """
    own = _own_broadcast(producer, users)
    if own is None or not own.id == producer.id + 1 == min(u.id for u in users):
        return False
    others = [u for u in users if u is not own]
    if any(v.opcode == "broadcast" for u in others for v in u.users if not was_sunk(u, own)):
        return False
    return all(is_elementwise(u) and u.opcode != "convert" for u in others)


def _was_sunk_alone(x: Instruction) -> bool:
    """Is it a comparison with its own broadcast, which was made right behind it?"""
    return x.opcode == "compare" and [(u.opcode, u.id) for u in x.users] == [("broadcast", x.id + 1)]


def _own_broadcast(producer: Instruction, users: list[Instruction]) -> Instruction | None:
    if not is_elementwise(producer):
        return None
    own = [u for u in users if u.opcode == "broadcast" and u.op_name and not is_of_program(u)]
    return own[0] if len(own) == 1 else None
