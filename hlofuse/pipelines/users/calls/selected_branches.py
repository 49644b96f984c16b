"""Conditionals that became selects: branches themselves read now what came in by a tuple for each of them.

ConditionalSimplifier (`xla/service/conditional_simplifier.cc`, `TryRemoveConditional`) inlines both branches
and selects among their results. TupleSimplifier gives a value its users within the branches, those of what
is done if the predicate is true first, and then, if a branch hands it on as it is, the select. All of them
come at the end. HloDCE takes the tuples away, that of the other branch first, and each time the last user is
put in the place.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import last_in_front, without

_BRANCH = re.compile(r"/branch_(\d+)_fun(?=/)")
_NAMELESS = frozenset({"parameter", "get-tuple-element"})


def with_last_in_place_of_branches(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of a value that branches read which are no computations of their own any more."""
    if not _is_given_to_branches(producer):
        return users
    own = set(_branches(producer.op_name or ""))
    branches: dict[Instruction, int] = {}
    place = None
    for user in users:
        found = next((x for x in _branches(user.op_name or "") if x not in own), None)
        if found is not None and found[0] == (place or found[0]):
            place = found[0]
            branches[user] = found[1]
    if place is None or any(x[0] == place for x in own):
        return users
    handed_on = [u for u in users if _hands_on(u, producer, place)]
    read = len(set(branches.values())) + bool(handed_on)
    inlined = [*sorted(branches, key=lambda u: -branches[u]), *handed_on]
    first = next(k for k, u in enumerate(users) if u in branches or u in handed_on)
    tuples = [Instruction("", producer.shape, "tuple") for _ in range(min(read, 2))]
    rest = [u for u in users[first:] if u not in inlined]
    return without([*users[:first], *tuples, *rest, *inlined], tuples)


def _is_given_to_branches(producer: Instruction) -> bool:
    if is_made_of_nothing(producer) or not (producer.op_name or producer.opcode in _NAMELESS):
        return False
    # A branch may have had conditionals of its own: what it is shows where those are.
    return not _is_in_branch(producer) or bool(_branches(producer.op_name or ""))


def _is_in_branch(x: Instruction) -> bool:
    return x.computation is None or any(caller.opcode == "conditional" for caller in x.computation.callers)


def is_of_inlined_branch(x: Instruction) -> bool:
    """Is it of a branch that is no computation of its own any more?"""
    return bool(_branches(x.op_name or "")) and not _is_in_branch(x)


def _hands_on(user: Instruction, producer: Instruction, place: str) -> bool:
    return is_result_of_branches(user) and user.op_name == place and producer in user.operands[1:]


@lru_cache(maxsize=1 << 12)
def _branches(op_name: str) -> tuple[tuple[str, int], ...]:
    """The branches in which it is, the outermost first, as the name of the conditional and a number.

    Those around a loop are left out.
    """
    found: list[tuple[str, int]] = []
    op_name = op_name.partition(";")[0]  # of several names the first counts
    for match in _BRANCH.finditer(op_name):
        if "/body/" not in op_name[match.end() :]:
            found.append((op_name[: match.start()], int(match[1])))
    return tuple(found)


def with_last_in_place_of_results(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of such a select: at first it was an element of a tuple, even of one."""
    return last_in_front(users) if is_result_of_branches(producer) else users


def is_result_of_branches(x: Instruction) -> bool:
    """Does it select what one branch or the other gives?"""
    return x.opcode == "select" and operation(x) == "cond"


def with_other_branches_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of what several branches compute alike: those of its own branch first.

    Both branches are there by then, and HloCSE (`xla/service/hlo_cse.cc`) keeps the value of one of them.
    """
    own = dict(_branches(producer.op_name or ""))
    return sorted(users, key=lambda u: _is_of_other_branch(u, own)) if own else users


def _is_of_other_branch(user: Instruction, own: dict[str, int]) -> bool:
    return any(own.get(place, branch) != branch for place, branch in _branches(user.op_name or ""))
