"""Broadcasts that the framework made for one operation each, of which CSE kept one for several."""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation
from hlofuse.pipelines.users.common.visits import Uses


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
