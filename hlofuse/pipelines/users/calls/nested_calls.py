"""The users of what a call within a called function computed.

CallInliner (`xla/service/call_inliner.cc`) comes to the functions that are called before those that call
them. A nested call that has several results ends in a tuple like any other: that stands between the users in
the call itself and those around it, and the last of these takes its place when it goes.
"""

from __future__ import annotations

from functools import partial

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import scope
from hlofuse.pipelines.users.calls.clones import operands_of, readers_of, twins_of
from hlofuse.pipelines.users.calls.results import (
    has_other_results,
    is_computed_of_nothing,
    is_of_next_call,
)
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.floats.widened import served_by


def as_call_within_leaves_it(
    result: Instruction, users: list[Instruction], function: str
) -> list[Instruction]:
    """The users in `function` of what a call in that computed, and another value too.

    That call had been inlined first, and left its place in the same way.
    """
    call = scope(result)
    if not call or call == function:
        return users
    call_of = partial(_call_seen_in, call)
    own = [u for u in users if _is_within(scope(served_by(u)) or "", call)]
    if all(is_of_next_call(u, result, call, call_of) for u in own):
        own = []
    others = [u for u in users if u not in own]
    if not own and any(scope(x) == call for x in twins_of(result)):
        return last_in_front(users)
    if not own and _is_recomputed_for_derivative(result, call):
        return last_in_front(users)
    if is_computed_of_nothing(result, call_of) or not has_other_results(result, call, call_of):
        return users
    return [*own, *last_in_front(others)]


def _is_within(scope: str, call: str) -> bool:
    return f"{scope}/".startswith(f"{call}/")


def _call_seen_in(call: str, x: Instruction) -> str:
    """`call`, another one, or "" for what is around that `call`; what a pass made is not told apart."""
    path = scope(x)
    if path is None or _is_within(path, call):
        return call
    return "" if _is_within(call, path) or not path else path


def _is_recomputed_for_derivative(result: Instruction, call: str) -> bool:
    """Does the derivative of a call that is made again (`jax.checkpoint`) need what `result` is made of?

    JAX gives those results of the call, whose derivative is a call outside of what is made again.
    """
    derivative = call.replace("/rematted_computation/", "/")
    if derivative == call:
        return False
    found, pending = {result}, [result]
    while pending:
        near = {o for o in operands_of(pending.pop()) if o not in found and scope(o) == call}
        if any(scope(u) == derivative for o in near for u in readers_of(o)):
            return True
        found |= near
        pending += near
    return False
