"""Sums of negated values, which became the negated sums of the values."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.duplicates.dead_at_cse import was_sum_of_negated


def with_sums_of_negated_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of a value that is negated as well: AlgebraicSimplifier made those sums behind all others.

    Mirrors `HandleReduce` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    if all(u.opcode != "negate" for u in users):
        return users
    return sorted(users, key=lambda u: u.opcode == "reduce" and any(map(was_sum_of_negated, u.users)))
