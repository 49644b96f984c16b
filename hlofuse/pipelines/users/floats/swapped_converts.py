"""Converts that AlgebraicSimplifier moved from behind a broadcast to in front of it.

Mirrors `TryToSinkBroadcastAfterElementwiseOps` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.floats.widened import is_same_broadcast


def with_swapped_behind(users: list[Instruction]) -> list[Instruction]:
    """The users with the upper halves of swapped pairs behind the others.

    Simplification makes `broadcast(convert(x))` of `convert(broadcast(x))`, behind all that uses `x`. What
    it stands for is still there: nothing has taken away dead instructions since. If `x` was a convert
    back to single precision, the two converts have gone as well. If `x` is a convert to less that nobody
    else reads, a walk comes to it behind all else now: it stood where it was broadcast. Of broadcasts that
    were made so the youngest is the last.
    """
    converts = [u for u in users if u.opcode == "convert"]
    broadcasts = [u for u in users if u.opcode == "broadcast"]
    if not converts or not (broadcasts or any(v.opcode == "broadcast" for u in converts for v in u.users)):
        return users
    narrow = [v for u in converts for v in u.users if v.opcode == "broadcast"]
    swapped = {u for u in broadcasts if any(_was_swapped(u, old) for old in narrow)}
    for convert in converts:
        if any(_was_swapped(v, old) for v in convert.users for old in broadcasts):
            swapped.add(convert)
    listed = list(users)
    for convert in converts:
        stand_in = next((u for u in users if u in swapped and _stands_for(u, convert)), None)
        if stand_in is not None and listed.index(stand_in) < listed.index(convert):
            listed.remove(convert)
            listed.insert(listed.index(stand_in), convert)
    return sorted(listed, key=lambda user: user.id if user in swapped else -1)


def _stands_for(broadcast: Instruction, convert: Instruction) -> bool:
    """Is it read in place of all that was broadcast of the convert?"""
    return bool(convert.users) and all(_was_swapped(broadcast, old) for old in convert.users)


def _was_swapped(new: Instruction, old: Instruction) -> bool:
    """The same broadcast of another type, with nothing behind it but the convert that was swapped."""
    return is_same_broadcast(new, old) and all(u.opcode == "convert" and not u.users for u in old.users)
