"""Broadcasts of constants, of which every function has its own until CSE makes them one."""

from __future__ import annotations

import sys

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, last_of_program, outermost_call
from hlofuse.pipelines.users.common.ages import with_clones_by_age
from hlofuse.pipelines.users.floats.widened import served_by


def in_order_of_merging(
    broadcast: Instruction, users: list[Instruction], *, passes: int | None
) -> list[Instruction]:
    """The users of such a broadcast: those in calls in the order of the calls, the others together.

    HloCSE (`xla/service/hlo_cse.cc`) keeps the broadcast that it meets first and appends the users of each
    other to its own. If that is the oldest, it meets calls in the order in which they were inlined, what is
    in one operands first: by age. What a pass made anew comes behind (`passes`, see `in_order_of_calls`).
    """
    served = {u: served_by(u) for u in users}
    called = [u for u in users if outermost_call(served[u])]
    own = [u for u in users if not outermost_call(served[u])]
    place = 0
    if (
        own and outermost_call(broadcast) and not _is_own(broadcast, passes)
    ):  # what was kept was read in a call at least
        place = users.index(own[0]) or len(called)
    if passes is not None:
        if broadcast.id >= passes:
            return users
        if all(served[u].id > broadcast.id for u in called if is_of_program(served[u])):
            called = with_clones_by_age(called, served, range(sys.maxsize))
    return [*called[:place], *own, *called[place:]]


def _is_own(broadcast: Instruction, passes: int | None) -> bool:
    """Is it of its computation itself, which is in a function as a whole?"""
    if passes is None or broadcast.computation is None:
        return False
    return broadcast.id < last_of_program(broadcast.computation.root)
