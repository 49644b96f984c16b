"""Reductions of a concatenate that became one of each part.

Mirrors `HandleReduce` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_split_reductions_behind(users: list[Instruction]) -> list[Instruction]:
    """Reductions that simplification made of one of a concatenate are younger than that."""
    split = {u: None for u in users if _is_split_reduction(u)}
    others = [u for u in users if u not in split]
    place = next((k for k, u in enumerate(others) if u.opcode == "concatenate"), None)
    if place is None:
        return users
    return [*others[: place + 1], *split, *others[place + 1 :]]


def _is_split_reduction(reduce: Instruction) -> bool:
    """Is its result combined with another part's, all under one name of the framework's?"""
    name = reduce.op_name
    return (
        reduce.opcode == "reduce"
        and name is not None
        and any(
            len(u.operands) == 2 and u.opcode != "reduce" and all(x.op_name == name for x in (u, *u.operands))
            for u in reduce.users
        )
    )
