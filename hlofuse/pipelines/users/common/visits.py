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
        stack = [(start, 0)]
        while stack:
            x, slot = stack.pop()
            if x in order:
                continue
            needed = operands(x)
            if slot == len(needed):
                order[x] = len(order)
                continue
            stack.append((x, slot + 1))
            stack.append((needed[slot], 0))
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
        stack = [(start, 0)]
        while stack:
            user, slot = stack.pop()
            operands = read.get(user) or user.operands
            if slot:
                uses.setdefault((operands[slot - 1], user), len(uses))
            if slot == len(operands):
                continue
            stack.append((user, slot + 1))
            producer = operands[slot]
            if producer not in seen:
                seen.add(producer)
                stack.append((producer, 0))
    for user in read:
        for producer in user.operands:
            uses.setdefault((producer, user), len(uses))
    return uses
