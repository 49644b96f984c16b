"""Slices of what a function gives back reversed, as `jnp.sort(x, descending=True)` does.

AlgebraicSimplifier (`HandleSlice`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) takes the slice
of what was reversed, and reverses that: a user of the result goes while the tuple of the call is there yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.users.common.holes import last_at


def with_last_in_place_of_slice(
    result: Instruction, users: list[Instruction], order: Mapping[Instruction, int]
) -> list[Instruction]:
    """The `users` of the `result`, if it is reversed and what that reverses is sliced outside."""
    if result.opcode != "reverse" or not outermost_call(result):
        return users
    for u in result.operands[0].users:
        if u.opcode == "slice" and u.op_name and not outermost_call(u):
            users = last_at(users, sum(order[v] < order[u] for v in users))
    return users
