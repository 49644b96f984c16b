"""Broadcasts of one number that were as many as their users."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.duplicates.scalars_for_each import uses_of_scalar


def with_merged_broadcasts(
    number: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    for_each: frozenset[Instruction],
) -> list[Instruction]:
    """The users of a scalar, given that the framework made a broadcast for every use of it.

    HloCSE (`xla/service/hlo_cse.cc`) kept the first of those that are equal, in post-order (`order`): each
    of the others went, and the last user took its place. Where the scalar had been as many as well, a
    broadcast was the last user when it went: the scalar was made one ahead of it. A scalar computed of it
    `for_each` use went in the same way.
    """
    if number.shape.rank or not number.shape.is_array or not any(u.opcode == "broadcast" for u in users):
        return users
    if _was_made_for_each(number, users):
        return users
    uses = [(u, v) for u in users for v in _served(u, for_each)]
    uses.sort(key=lambda use: order[use[1]])
    kept: dict[Instruction, tuple[Instruction, Instruction]] = {}
    gone = [use for use in uses if kept.setdefault(use[0], use) != use]
    return [u for u, _ in without(uses, gone)]


def _was_made_for_each(number: Instruction, users: list[Instruction]) -> bool:
    """Had every broadcast a scalar of its own, which a pass made or its operation converted?"""
    if number.op_name and number.opcode in ELEMENTWISE_OPCODES and not is_of_program(number):
        return True
    if operation(number) != "convert_element_type" or not stack_frame(number):
        return False
    place = stack_frame(number)
    return all(stack_frame(u) == place and operation(u) != operation(number) for u in users)


def _served(user: Instruction, for_each: frozenset[Instruction]) -> list[Instruction]:
    if user in for_each:
        return uses_of_scalar(user)
    return user.users if user.opcode == "broadcast" and user.users else [user]
