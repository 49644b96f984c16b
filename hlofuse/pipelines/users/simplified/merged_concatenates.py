"""The users of concatenates that others were merged with, and of the operands of those."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.concatenates import is_of_merged, outer_ones
from hlofuse.pipelines.users.common.holes import last_at


def with_concatenates_merged(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The `users` of an inner one with the last where the outer one stood, as the `order` of a walk is.

    What was made anew comes behind the others.
    """
    users = sorted(users, key=is_of_merged)
    for outer in outer_ones(producer):
        place = next((k for k, u in enumerate(users) if order[u] > order[outer]), None)
        if place is not None:
            users = last_at(users, place)
    return users
