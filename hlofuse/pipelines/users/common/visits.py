"""Walks through a computation, operands first, and what they come along when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def uses_in_order(computation: Computation, starts: Iterable[Instruction] = ()) -> Uses:
    """The order of uses; that of the users themselves differs, as a user is through only after all operands.

    In `divide(x, reduce(x))` the reduce is visited first, the use of `x` by the divide comes first. The walk
    goes to `starts` before it goes to what has no users.
    """
    uses: Uses = {}
    seen: set[Instruction] = set()
    for start in (*starts, *(x for x in computation if not x.users)):
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, 0)]
        while stack:
            user, slot = stack.pop()
            if slot:
                uses.setdefault((user.operands[slot - 1], user), len(uses))
            if slot == len(user.operands):
                continue
            stack.append((user, slot + 1))
            producer = user.operands[slot]
            if producer not in seen:
                seen.add(producer)
                stack.append((producer, 0))
    return uses
