"""An order that was found for the users of a value, and whether it can be one."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.instruction import Instruction


def reorder_users(value: Instruction, order: Sequence[Instruction]) -> bool:
    """Put the users of `value` into `order`; False, and nothing done, where that is not just these users.

    What was found for a program that nobody has met may miss a user or have one twice. A list in another
    order costs a decision or two; one with a user that is gone ends the replay.
    """
    if len(order) != len(value.users) or set(order) != set(value.users):
        return False
    value.users[:] = order
    return True
