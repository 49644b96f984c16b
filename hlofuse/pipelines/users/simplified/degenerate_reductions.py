"""Reductions over dimensions of one, which give back what they reduce.

`(max(x, keepdims=True) + x) * sum(x, keepdims=True)` becomes `(x + x) * x`.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_loop_of_one_turn
from hlofuse.pipelines.names import is_of_program, stack_frame
from hlofuse.pipelines.users.common.holes import last_at, last_in_front


def with_last_in_place_of_degenerate(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer`, the last in the place of such a reduction that another read with it.

    AlgebraicSimplifier (`HandleReduce`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes it a
    reshape, and one with that back to the dimensions of `producer` nothing. A program may have `x + x`
    itself: the last, which reads both and is written elsewhere, tells of the reduction. No program has
    `x - x`: that is what a softmax leaves. Where the reduction was the only one to read `producer`, its users
    were appended.
    """
    *others, last = users
    if not producer.shape.is_array or 1 not in producer.shape.dimensions:
        return users
    if _is_reduced_elsewhere(producer, users[0]):
        return last_in_front(users)
    for k, u in enumerate(others):
        is_difference = u.opcode == "subtract" and u.operands == [producer, producer] and is_of_program(u)
        if is_difference and not is_loop_of_one_turn(last):  # that comes out of its loop later
            return last_at(users, k)
    if producer not in last.operands:
        return users
    for k, u in enumerate(others):
        is_twice = u.opcode == "add" and u.operands == [producer, producer] and is_of_program(u)
        if is_twice and u in last.operands and last.shape.is_array and stack_frame(u) != stack_frame(last):
            return last_at(users, k)
    return users


def _is_reduced_elsewhere(x: Instruction, reader: Instruction) -> bool:
    """Does the same operation, written once for arrays of many shapes, read a sum of them elsewhere?

    Of an array of one element that sum was the element.
    """
    if x.shape.true_rank or not x.op_name or not is_of_program(reader) or x.computation is None:
        return False
    return (_origin(x), _origin(reader)) in _read_reduced(x.computation.root)


def with_own_reshape_in_front(reduction: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `reduction` made anew, the reshape first that was made with it. Ids have to be XLA's.

    ReductionDegenerateDimRemover (`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`) gave all
    that read the one before that reshape, which has the name of the reduction. AlgebraicSimplifier put behind
    it those that read the reduction past the reshape.
    """
    if reduction.opcode != "reduce" or not reduction.op_name:
        return users
    return sorted(users, key=lambda u: not _is_made_with(u, reduction))


def _is_made_with(u: Instruction, reduction: Instruction) -> bool:
    return u.opcode == "bitcast" and u.id == reduction.id + 1 and _origin(u) == _origin(reduction)


@lru_cache(maxsize=2)  # asked for one computation after the other
def _read_reduced(root: Instruction) -> frozenset[tuple[Hashable, Hashable]]:
    """What is reduced in the computation of `root` and what reads that, by name and place in the source."""
    found: set[tuple[Hashable, Hashable]] = set()
    for x in root.computation or ():
        if x.opcode == "reduce" and x.op_name != x.operands[0].op_name:  # of one that was split the rest
            readers = (v for u in x.users for v in (u.users if u.opcode == "bitcast" else [u]))
            found.update((_origin(x.operands[0]), _origin(u)) for u in readers)
    return frozenset(found)


def _origin(x: Instruction) -> Hashable:
    return x.op_name, stack_frame(x)
