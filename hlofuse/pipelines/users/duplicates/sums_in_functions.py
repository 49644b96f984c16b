"""Sums that a function computes of what it is given, and its caller as well.

`mean(x)` and `var(x)` both sum `x`, the second within a function. Where the walk meets the call first, HloCSE
(`xla/service/hlo_cse.cc`) keeps the sum of the function, and the caller's goes.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import last_at


def with_last_in_place_of_callers_sum(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The `users` of `producer` with the last where the caller's sum stood, among those outside."""
    if len(users) < 2:
        return users
    around = outermost_call(producer)
    for user in users:
        total = user.users[0] if user.opcode == "bitcast" and len(user.users) == 1 else user
        function = outermost_call(total)
        if total.opcode != "reduce" or not function or function == around or not is_of_program(total):
            continue
        read = _read_outside(total, function, order)
        if read is None:
            continue
        outside = [u for u in users if outermost_call(u) == around and u is not user]
        before = [u for u in outside if order[u] < read]
        behind = next((u for u in outside if order[u] >= read), None)
        if behind is None:
            return users
        return last_at(users, users.index(before[-1]) + 1 if before else users.index(behind))
    return users


def _read_outside(total: Instruction, function: str, order: dict[Instruction, int]) -> int | None:
    """When the walk first comes from outside to what the `function` makes of `total` alone."""
    found, pending = {total}, [total]
    reads: list[int] = []
    while pending:
        x = pending.pop()
        for u in x.users:
            if outermost_call(u) != function:
                reads.append(order[u])
            elif u not in found and all(o in found or is_made_of_nothing(o) for o in u.operands):
                found.add(u)
                pending.append(u)
    return min(reads, default=None)
