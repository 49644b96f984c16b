"""Broadcasts of one number that were as many as their users."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without


def with_merged_broadcasts(
    number: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a scalar, given that the framework made a broadcast for every use of it.

    HloCSE (`xla/service/hlo_cse.cc`) kept the first of those that are equal, in post-order (`order`): each
    of the others went, and the last user took its place.
    """
    if number.shape.rank or not number.shape.is_array or not any(u.opcode == "broadcast" for u in users):
        return users
    uses = [(u, v) for u in users for v in _served(u)]
    uses.sort(key=lambda use: order[use[1]])
    kept: dict[Instruction, tuple[Instruction, Instruction]] = {}
    gone = [use for use in uses if kept.setdefault(use[0], use) != use]
    return [u for u, _ in without(uses, gone)]


def _served(user: Instruction) -> list[Instruction]:
    return user.users if user.opcode == "broadcast" and user.users else [user]
