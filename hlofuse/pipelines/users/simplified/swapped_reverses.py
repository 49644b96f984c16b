"""Reverses that simplification moved from behind an operation with a number to in front of it.

AlgebraicSimplifier makes `reverse(x) * c` of `reverse(x * c)` (`HandleReverse`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), behind all that uses `x`.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


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
