"""Converts that simplification moved from behind a broadcast to in front of it."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_swapped_behind(users: list[Instruction]) -> list[Instruction]:
    """The users with the upper halves of swapped pairs behind the others.

    Simplification makes `broadcast(convert(x))` of `convert(broadcast(x))`, behind all that uses `x`. What
    it stands for is still there: nothing has taken away dead instructions since. If `x` was a convert
    back to single precision, the two converts have gone as well.
    """
    converts = [u for u in users if u.opcode == "convert"]
    broadcasts = [u for u in users if u.opcode == "broadcast"]
    if not converts or not (broadcasts or any(v.opcode == "broadcast" for u in converts for v in u.users)):
        return users
    narrow = [v for u in converts for v in u.users if v.opcode == "broadcast"]
    swapped = {u for u in broadcasts if any(_is_same_broadcast(u, old) for old in narrow)}
    for convert in converts:
        if any(_is_same_broadcast(v, old) for v in convert.users for old in broadcasts):
            swapped.add(convert)
    return sorted(users, key=lambda user: user in swapped)


def _is_same_broadcast(new: Instruction, old: Instruction) -> bool:
    """The same broadcast of another type, with nothing behind it but the convert that was swapped."""
    return (
        new.opcode == old.opcode
        and old.shape.dimensions == new.shape.dimensions
        and old.attributes.get("dimensions") == new.attributes.get("dimensions")
        and all(u.opcode == "convert" and not u.users for u in old.users)
    )
