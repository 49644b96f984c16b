"""Reductions of what was reduced in the same way before, as a maximum of maxima."""

from __future__ import annotations

from functools import partial

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.holes import behind_last


def with_reduced_again_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of a value, with a later reduction of more dimensions behind an earlier one like it.

    If it reduced the result of that, AlgebraicSimplifier had it read the value itself (`HandleReduce`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), when the earlier one had long done so.
    """
    if not any(map(_is_of_program, users)):
        return users
    for user in users:
        if not _is_of_program(user) and (again := _reduced_in_the_end(user)):
            users = behind_last(users, user, partial(_comes_behind, again))
    return users


def _is_of_program(x: Instruction) -> bool:
    return x.opcode == "reduce" and is_of_program(x)


def _reduced_in_the_end(bitcast: Instruction) -> Instruction | None:
    """The reduction of the program that `bitcast` was put in front of, be it done in one step or split."""
    reduction = bitcast
    while reduction is bitcast or not is_of_program(reduction):
        if len(reduction.users) != 1 or reduction.users[0].opcode != "reduce":
            return None
        (reduction,) = reduction.users
    return reduction if bitcast.opcode == "bitcast" else None


def _comes_behind(again: Instruction, earlier: Instruction) -> bool:
    """Has it a greater number than that of the program, for the same operation, from another place?"""
    if not _is_of_program(earlier):
        return False
    one, other = name_before_renaming(again), name_before_renaming(earlier)
    is_same = one.root == other.root and operation(again) == operation(earlier)
    return is_same and one.number > other.number and stack_frame(again) != stack_frame(earlier)
