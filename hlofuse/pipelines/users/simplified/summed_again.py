"""Sums that were summed again over dimensions of one, as the derivative of a broadcast is."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import Name, is_of_program, name_before_renaming
from hlofuse.pipelines.users.common.holes import last_in_front


def names_of_reductions(order: Iterable[Instruction]) -> frozenset[Name]:
    """The names that reductions have."""
    return frozenset(name_before_renaming(x) for x in order if x.opcode == "reduce")


def with_last_in_place_of_sum(
    producer: Instruction, users: list[Instruction], names: frozenset[Name]
) -> list[Instruction]:
    """The users of a reduction with the last in front if the next number of its name is missing
    between others.

    The framework reduces to dimensions of one and then over those. Simplification makes the second
    reduction a reshape, which changes nothing and goes in turn: its users are appended and the last takes
    its place (`HandleReduce` and `HandleReshape`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    if producer.opcode != "reduce" or not producer.shape.rank or not is_of_program(producer):
        return users
    root, number = name_before_renaming(producer)
    if (root, number + 1) in names or not all(map(is_of_program, users)):
        return users
    is_last = not any(name.root == root and name.number > number for name in names)
    return users if is_last else last_in_front(users)
