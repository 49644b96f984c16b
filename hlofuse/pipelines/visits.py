"""In which order a walk through a computation, operands first, comes along each use of a value."""

from __future__ import annotations

from typing import TypeAlias

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction

Uses: TypeAlias = "dict[tuple[Instruction, Instruction], int]"
"""By producer and user, when the walk first stood at the user and was through with the producer."""


def uses_in_order(computation: Computation) -> Uses:
    """The order of uses; that of the users themselves differs, as a user is through only after all operands.

    In `divide(x, reduce(x))` the reduce is visited first, the use of `x` by the divide comes first.
    """
    uses: Uses = {}
    seen: set[Instruction] = set()
    for start in computation:
        if start.users or start in seen:
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
