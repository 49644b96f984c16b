"""Conditionals that became selects: what came in by a tuple for each branch is read by both now.

ConditionalSimplifier (`xla/service/conditional_simplifier.cc`, `TryRemoveConditional`) inlines both branches
and selects among their results. TupleSimplifier gives a value its users within the one branch, then, if the
other branch hands it on as it is, the select, all of them at the end. HloDCE takes the two tuples away, that
of the branch inlined first at first, and each time the last user is put in its place.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import without


def with_selects_in_place_of_branches(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of a value that one branch reads and the other one hands on."""
    select = next((u for u in users if _hands_on(u, producer)), None)
    if select is None or f"{select.op_name}/" in (producer.op_name or ""):
        return users
    within = [u for u in users if (u.op_name or "").startswith(f"{select.op_name}/")]
    if not within:
        return users
    own = {select, *within}
    first = next(k for k, u in enumerate(users) if u in own)
    # Two of them stand for the tuples, which were where the conditional is.
    tuples = [Instruction("", u.shape, "tuple") for u in (select, within[0])]
    rest = [u for u in users[first:] if u not in own]
    return without([*users[:first], *tuples, *rest, *within, select], tuples)


def _hands_on(user: Instruction, producer: Instruction) -> bool:
    return user.opcode == "select" and operation(user) == "cond" and producer in user.operands[1:]
