"""Reverses that changed places with what they read, or with what reads them.

AlgebraicSimplifier makes `reverse(x) * c` of `reverse(x * c)` (`HandleReverse`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), behind all that uses `x`, and of a slice of
`reverse(x)` the reverse of another slice (`TryToReorderSliceAndReverse`).
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.holes import last_at


def with_swapped_reverses_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of `x` with such reverses last, where `x * c` is still there."""
    swapped = {
        u: None for u in users if u.opcode == "reverse" and not u.op_name and _was_behind_any(u, users)
    }
    return [*(u for u in users if u not in swapped), *swapped] if swapped else users


def _was_behind_any(reverse: Instruction, others: list[Instruction]) -> bool:
    return any(_same_with_number(u, other) for u in reverse.users for other in others)


def _same_with_number(a: Instruction, b: Instruction) -> bool:
    """Are both the same operation with the same number?"""
    if a.opcode != b.opcode or len(a.operands) != 2:
        return False
    return any(o in b.operands and o.opcode == "broadcast" and not o.dimensions for o in a.operands)


def with_last_in_place_of_slice_of_reverse(
    reverse: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a `reverse`, the last in the place of each slice of it that was taken of `x` instead."""
    if reverse.opcode != "reverse":
        return users
    (x,) = reverse.operands
    for part in (u for u in x.users if u.opcode == "slice"):
        if any(_is_swapped(u, reverse) and u.op_name == part.op_name for u in part.users):
            users = last_at(users, sum(order[u] < order[part] for u in users))
    return users


def _is_swapped(u: Instruction, reverse: Instruction) -> bool:
    is_alike = u.opcode == "reverse" and [*u.dimensions] == [*reverse.dimensions]
    return is_alike and bool(u.op_name) and not is_of_program(u)
