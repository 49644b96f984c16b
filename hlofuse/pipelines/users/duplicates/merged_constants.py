"""Broadcasts of constants, of which every function has its own until CSE makes them one."""

from __future__ import annotations

from itertools import chain, groupby

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import last_of_program
from hlofuse.pipelines.calls_in_names import outermost_call, scope
from hlofuse.pipelines.names import is_of_program, stack_frame
from hlofuse.pipelines.users.floats.widened import served_by


def in_order_of_merging(
    broadcast: Instruction, users: list[Instruction], *, passes: int | None
) -> list[Instruction]:
    """The users of such a broadcast: those in calls in the order of the calls, the others together.

    HloCSE (`xla/service/hlo_cse.cc`) keeps the broadcast that it meets first and appends the users of each
    other to its own. If that is the oldest, what is in one call is by age: it was cloned operands first. What
    a pass made anew comes behind (`passes`, see `in_order_of_calls`).
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
            called = _as_met(called, served, passes)
            place = min(place, sum(served[u].id < passes for u in called))
    return [*called[:place], *own, *called[place:]]


def _as_met(
    users: list[Instruction], served: dict[Instruction, Instruction], passes: int
) -> list[Instruction]:
    """The `users` in calls by when CSE came along the broadcast that each call had.

    The oldest is of the call that the kept one is of. The walk meets the others operands first, as a text
    has them. They were inlined in such an order, too, but by the arguments of the calls, which functions may
    read in another one: with calls of several the order is that of now, with calls of one that of age. What
    passes made stays where it is.
    """
    cloned = sorted((u for u in users if is_of_program(served[u])), key=lambda u: served[u].id)
    there = [u for u in cloned if served[u].id < passes]
    calls = [list(call) for _, call in groupby(there, lambda u: (scope(served[u]), stack_frame(served[u])))]
    place = {u: k for k, u in enumerate(users)}
    if len({_function(served[u]) for u in there}) > 1:
        calls[1:] = sorted(calls[1:], key=lambda call: min(place[u] for u in call))
    by_call = chain(chain.from_iterable(calls), cloned[len(there) :])
    return [next(by_call) if is_of_program(served[u]) else u for u in users]


def _function(x: Instruction) -> str:
    return (scope(x) or "").rpartition("/")[2]


def _is_own(broadcast: Instruction, passes: int | None) -> bool:
    """Is it of its computation itself, which is in a function as a whole?"""
    if passes is None or broadcast.computation is None:
        return False
    return broadcast.id < last_of_program(broadcast.computation.root)
