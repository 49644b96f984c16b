"""Walks through a computation, operands first, and what they come along when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction

Uses: TypeAlias = "dict[tuple[Instruction, Instruction], int]"
"""By producer and user, when the walk first stood at the user and was through with the producer."""


def order_of_walk(
    starts: Iterable[Instruction], operands: Callable[[Instruction], Sequence[Instruction]]
) -> dict[Instruction, int]:
    """Where each instruction comes in a walk from `starts`, which goes through `operands` of each first."""
    order: dict[Instruction, int] = {}
    for start in starts:
        stack = [(start, iter(operands(start)))] if start not in order else []
        while stack:
            x, left = stack[-1]
            for needed in left:
                if needed not in order:
                    stack.append((needed, iter(operands(needed))))
                    break
            else:
                stack.pop()
                order[x] = len(order)
    return order


def uses_in_order(
    computation: Computation,
    starts: Iterable[Instruction] = (),
    read: Mapping[Instruction, Sequence[Instruction]] | None = None,
) -> Uses:
    """The order of uses; that of the users themselves differs, as a user is through only after all operands.

    In `divide(x, reduce(x))` the reduce is visited first, the use of `x` by the divide comes first. The walk
    goes to `starts` before it goes to what has no users. What `read` tells other operands of is gone through
    with those, and then whatever that left out.
    """
    uses: Uses = {}
    seen: set[Instruction] = set()
    read = read or {}
    left_out = computation if read else ()
    for start in (*starts, *(x for x in computation if not x.users), *left_out):
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(read.get(start) or start.operands))]
        while stack:
            user, left = stack[-1]
            for producer in left:
                if producer not in seen:
                    seen.add(producer)
                    stack.append((producer, iter(read.get(producer) or producer.operands)))
                    break
                uses.setdefault((producer, user), len(uses))
            else:
                stack.pop()
                if stack:
                    uses.setdefault((user, stack[-1][0]), len(uses))
    for user in read:
        for producer in user.operands:
            uses.setdefault((producer, user), len(uses))
    return uses
