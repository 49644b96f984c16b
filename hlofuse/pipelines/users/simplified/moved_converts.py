"""Converts to less that were moved in front of what was computed of the value ahead of them."""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.floats.inserted_converts import is_unnamed_convert

_MOVES_BEHIND = frozenset({"concatenate", "pad", "slice", "transpose"})


def with_converts_in_place_of_moved(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of `producer`, of which such a convert stands where that is which it was moved in front of.

    ConvertMover (`xla/hlo/transforms/simplifiers/convert_mover.cc`) makes `op(convert(x))` of
    `convert(op(x))`. The converts were appended, and when `op` itself went the last user took its place. A
    text has each convert where its reader first needs it.
    """
    moved = [u for u in users if _is_moved(producer, u)]
    if len(moved) != 1:
        return users
    (convert,) = moved
    others = [u for u in users if u is not convert]
    place = sum(order[u] < order[convert.users[0]] for u in others)
    return [*others[:place], convert, *others[place:]]


def _is_moved(producer: Instruction, user: Instruction) -> bool:
    """Is it one of converts that nobody named, which are all that its one reader is computed of?

    That of the same number everywhere was one, too.
    """
    if not is_unnamed_convert(user) or len(user.users) != 1 or user.users[0].opcode not in _MOVES_BEHIND:
        return False
    if user.shape.bit_width >= producer.shape.bit_width:
        return False
    return all(is_unnamed_convert(o) or is_broadcast_of_constant(o) for o in user.users[0].operands)
