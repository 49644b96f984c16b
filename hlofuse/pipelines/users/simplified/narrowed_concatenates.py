"""Concatenates that were cut down to the operands a slice needs."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_narrowed_behind(users: list[Instruction]) -> list[Instruction]:
    """The users with concatenates that simplification made of one for its slices behind the others.

    The old one goes with its last slice, and the last of the new ones takes its place (`HandleSlice`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). With a constant a new one becomes a pad, in the
    same place (`HandleConcatenate`). Ids have to be XLA's.
    """
    whole = {u.op_name for u in users if u.opcode == "concatenate"}
    padded = [u for u in users if u.opcode == "pad" and u.op_name in whole]
    if padded:
        return [*(u for u in users if u not in padded), *sorted(padded, key=lambda u: u.id)]
    narrowed = sorted((u for u in users if _is_narrowed(u)), key=lambda u: u.id)
    if not narrowed:
        return users
    others = [u for u in users if u not in narrowed]
    parts = {o for u in narrowed for o in u.operands}
    if any(u.opcode == "concatenate" and parts.issubset(u.operands) for u in others):
        return [*others, *narrowed]
    return users if len(narrowed) == 1 else [*others, narrowed[-1], *narrowed[:-1]]


def _is_narrowed(x: Instruction) -> bool:
    """A concatenate made together with the slice of it."""
    return (
        x.opcode == "concatenate" and [u.opcode for u in x.users] == ["slice"] and x.users[0].id == x.id + 1
    )
