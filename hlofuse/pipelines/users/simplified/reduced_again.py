"""Reductions of what was reduced in the same way before, as a maximum of maxima."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation, stack_frame


def with_reduced_again_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of a value, with a later reduction of more dimensions behind an earlier one like it.

    If it reduced the result of that, AlgebraicSimplifier had it read the value itself (`HandleReduce`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), when the earlier one had long done so.
    """
    earlier = [u for u in users if u.opcode == "reduce" and is_of_program(u)]
    if not earlier:
        return users
    for user in users:
        if user in earlier or not (again := _reduced_in_the_end(user)):
            continue
        behind = [k for k, u in enumerate(users) if u in earlier and _comes_behind(again, u)]
        if behind and users.index(user) < behind[-1]:
            listed = [u for u in users[: behind[-1] + 1] if u is not user]
            users = [*listed, user, *users[behind[-1] + 1 :]]
    return users


def _reduced_in_the_end(bitcast: Instruction) -> Instruction | None:
    """The reduction of the program that `bitcast` was put in front of, be it done in one step or split."""
    reduction = bitcast
    while reduction is bitcast or not is_of_program(reduction):
        if len(reduction.users) != 1 or reduction.users[0].opcode != "reduce":
            return None
        (reduction,) = reduction.users
    return reduction if bitcast.opcode == "bitcast" else None


def _comes_behind(again: Instruction, earlier: Instruction) -> bool:
    """Has it a greater number for the same operation, from another place in the source?"""
    one, other = name_before_renaming(again), name_before_renaming(earlier)
    is_same = one.root == other.root and operation(again) == operation(earlier)
    return is_same and one.number > other.number and stack_frame(again) != stack_frame(earlier)
