"""Broadcasts that the framework made for one operation each, of which CSE kept one for several."""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.visits import Uses

_STRETCHED = 3
"""Spread, reshaped, spread again."""


def with_own_user_first(broadcast: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `broadcast`, given that it was made for one of them, which has the next number.

    HloCSE (`xla/service/hlo_cse.cc`) keeps the broadcast that its walk meets first, and appends the users of
    those equal to it.
    """
    if broadcast.opcode != "broadcast":
        return users
    in_place = [u for u in users if _is_in_place_of(broadcast, u)]
    if len(in_place) == 1 and _is_stretched_first(broadcast, in_place[0]):
        return sorted(users, key=lambda u: u is not in_place[0])
    return sorted(users, key=lambda u: not _is_made_with(u, broadcast))


def _is_made_with(user: Instruction, broadcast: Instruction) -> bool:
    own, name = name_before_renaming(broadcast), name_before_renaming(user)
    return user.op_name == broadcast.op_name and name == (own.root, own.number + 1)


def _is_in_place_of(broadcast: Instruction, user: Instruction) -> bool:
    place = stack_frame(broadcast)
    return bool(place) and (user.op_name, stack_frame(user)) == (broadcast.op_name, place)


def _is_stretched_first(broadcast: Instruction, user: Instruction) -> bool:
    """Are both operands of its `user` stretched? What is made for the second is numbered in between."""
    own, name = name_before_renaming(broadcast), name_before_renaming(user)
    second = user.operands[-1]
    between = name_before_renaming(second)
    return (
        second.opcode == "broadcast"
        and second is not broadcast
        and between == (own.root, name.number - 1)
        and 0 < between.number - own.number <= _STRETCHED
    )


def in_order_of_own_broadcasts(
    broadcast: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of a `broadcast` of a scalar that is no constant, given that each had one of its own.

    The framework spreads a scalar that an operation reads for that operation, and names the broadcast after
    it. The walk comes to it ahead of whatever else the operation reads.
    """
    if not had_each_its_own(broadcast, users):
        return users
    return sorted(users, key=lambda u: uses[broadcast, u])


def had_each_its_own(broadcast: Instruction, users: list[Instruction]) -> bool:
    """Was a `broadcast` of a scalar made for each of the `users`, whatever call each is of?

    It is named after the one of them that it was made for.
    """
    if broadcast.opcode != "broadcast" or broadcast.operands[0].shape.rank or not is_of_program(broadcast):
        return False
    if is_constant(broadcast.operands[0]) or operation(broadcast) in {"", "broadcast_in_dim"}:
        return False
    if not all(is_of_program(u) and u.opcode in ELEMENTWISE_OPCODES for u in users):
        return False
    return any(operation(u) == operation(broadcast) for u in users)
