"""The users of what a call within a called function computed.

CallInliner (`xla/service/call_inliner.cc`) comes to the functions that are called before those that call
them. A nested call that has several results ends in a tuple like any other: that stands between the users in
the call itself and those around it, and the last of these takes its place when it goes.
"""

from __future__ import annotations

from functools import lru_cache, partial

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative, scope
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.calls.clones import operands_of, readers_of, twins_of
from hlofuse.pipelines.users.calls.results import (
    Results,
    is_computed_of_nothing,
    is_of_next_call,
)
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.floats.widened import served_by


def as_call_within_leaves_it(
    result: Instruction, users: list[Instruction], function: str, results: Results
) -> list[Instruction]:
    """The users in `function` of what a call in that computed, and another value too.

    That call had been inlined first, and left its place in the same way.
    """
    own = _ahead_of_tuple(result, users, function, results)
    if own is None:
        return users
    around = [u for u in users if u not in own]
    if own and all(any(_is_like_in_other_call(u, v) for v in own) for u in around):
        return users
    return [*own, *last_in_front(around)]


def _is_like_in_other_call(u: Instruction, v: Instruction) -> bool:
    """Did another call of the function, in the same place, read a value of its own as `v` does?

    HloCSE (`xla/service/hlo_cse.cc`) made one of the values, as where two calls mix a number with one key.
    """
    if is_of_derivative(u) or stack_frame(u) != stack_frame(v) or not stack_frame(u):
        return False
    calls = (scope(u) or "").rpartition("/"), (scope(v) or "").rpartition("/")
    return u.opcode == v.opcode and calls[0] != calls[1] and calls[0][2] == calls[1][2]


def as_nested_tuples_leave_it(
    result: Instruction,
    inner: list[Instruction],
    outer: list[Instruction],
    function: str,
    results: Results,
) -> list[Instruction] | None:
    """The users in `function`, and those around it, of what both it and a call in it have as a result.

    The tuple in which the `function` ends took the place of that of the nested call, and the last user of
    all took its place in turn. None if the nested call ends in no tuple. Where it is negated there, those
    around may have read that: AlgebraicSimplifier has a product of two negated values read the values. What
    passes put in, without a name, tells of no call.
    """
    own = _ahead_of_tuple(result, inner, function, results)
    if own is None or any(u.opcode == "negate" for u in inner) or not all(u.op_name for u in outer):
        return None
    return [*own, outer[-1], *(u for u in inner if u not in own), *outer[:-1]]


def _ahead_of_tuple(
    result: Instruction, users: list[Instruction], function: str, results: Results
) -> list[Instruction] | None:
    """The users in the call within `function` that computed `result`; None if it did not end in a tuple."""
    call = scope(result)
    if not call or call == function:
        return None
    call_of = partial(_call_seen_in, call)
    own = [u for u in users if _is_within(scope(served_by(u)) or "", call)]
    if all(is_of_next_call(u, result, call, call_of) for u in own):
        own = []
    if not own and any(scope(x) == call for x in twins_of(result)):
        return own
    if not own and _is_recomputed_for_derivative(result, call):
        return own
    if is_computed_of_nothing(result, call_of) or not results.has_others(result, call, call_of):
        return None
    return own


def _is_within(scope: str, call: str) -> bool:
    return f"{scope}/".startswith(f"{call}/")


def _call_seen_in(call: str, x: Instruction) -> str:
    """`call`, another one, or "" for what is around that `call`; what a pass made is not told apart."""
    path = scope(x)
    return call if path is None else _seen_in(call, path)


@lru_cache(maxsize=1 << 15)
def _seen_in(call: str, path: str) -> str:
    if _is_within(path, call):
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
