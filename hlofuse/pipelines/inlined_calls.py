"""The users of values in functions that were calls in the program, such as jit(silu).

CallInliner (`xla/service/call_inliner.cc`) clones the body of a function operands first, so that inside
of it age and the order of users agree; who uses a result outside comes behind them. A function with
several results ends in a tuple, which is a user of each as well. It goes when its elements have found
their users, and the last user takes its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.constants import is_made_of_nothing
from hlofuse.pipelines.holes import without
from hlofuse.pipelines.names import is_of_program, outermost_call, stack_frame
from hlofuse.pipelines.widened import is_inserted_convert, is_narrowing, served_by


def in_order_of_calls(
    producer: Instruction, users: list[Instruction], *, ids_known: bool
) -> list[Instruction]:
    """The users of `producer` with those in the same function first, by age if it is known."""
    source = producer.operands[0] if is_narrowing(producer) else producer
    function = outermost_call(source)
    if not function:
        return _with_calls_inlined(users, ids_known=ids_known)
    served = {u: served_by(u) for u in users}
    within = {u for u, it in served.items() if _is_of_same_call(it, source, function)}
    inner = [u for u in users if u in within]
    outer = [u for u in users if u not in within]
    outer = _with_calls_inlined(outer, ids_known=ids_known)
    cloned = (
        {u for u in inner if served[u].id > source.id and is_of_program(served[u])} if ids_known else set()
    )
    if cloned:
        by_age = iter(sorted(cloned, key=lambda u: served[u].id))
        inner = [next(by_age) if u in cloned else u for u in inner]
    # A constant is no result; whoever reads it outside had one of its own.
    if outer and not is_made_of_nothing(source) and _has_other_results(source, function):
        return _without_tuples(inner, outer)
    return [*inner, *outer]


def _is_of_same_call(x: Instruction, source: Instruction, function: str) -> bool:
    """Was `x` cloned with `source`, out of one call of `function`?"""
    if x.opcode == "bitcast":  # it bears the name of what it was put behind
        within = all(outermost_call(u) == function and u.opcode != "bitcast" for u in x.users)
        return bool(x.op_name and x.users and within)
    if outermost_call(x) != function:
        return False
    return not (_is_result(source) and _leads_to_like(source, x, function))


def _leads_to_like(result: Instruction, start: Instruction, function: str) -> bool:
    """Is `start` of a call that has no other result than one like `result`? Then it is another call."""
    found, pending, again = {start}, [start], False
    while pending:
        x = pending.pop()
        if (x.opcode, x.op_name, x.shape) == (result.opcode, result.op_name, result.shape):
            again = True
            continue
        if _is_result(x):
            return False
        near = [u for u in x.users if outermost_call(u) == function and u not in found]
        found.update(near)
        pending += near
    return again


def _with_calls_inlined(users: list[Instruction], *, ids_known: bool) -> list[Instruction]:
    """Each call was a user itself; its clones came behind all, the last of them into its place."""
    calls: dict[tuple[Hashable, int], list[Instruction]] = {}
    results: Counter[Hashable] = Counter()
    listed: list[Instruction | tuple[Hashable, int]] = []
    for user in users:
        clone = served_by(user)
        place = _place_of_call(clone) if clone.opcode != "bitcast" else None
        if place is None:
            listed.append(user)
            continue
        kind = (place, clone.opcode, clone.op_name)
        # The same result again is another call's from the same place.
        call = (place, results[kind])
        results[kind] += _is_result(clone)
        if call not in calls:
            listed.append(call)
        calls.setdefault(call, []).append(user)
    if ids_known:
        for clones in calls.values():
            clones.sort(key=lambda u: served_by(u).id)
        # They were inlined in the order in which they stood.
        by_age = sorted(calls, key=lambda call: served_by(calls[call][0]).id)
        calls, slots = {call: calls[call] for call in by_age}, iter(by_age)
        listed = [x if isinstance(x, Instruction) else next(slots) for x in listed]
    for call, clones in calls.items():
        listed = without([*listed, *clones], [call])
    return [u for u in listed if isinstance(u, Instruction)]


def _is_result(x: Instruction) -> bool:
    function = outermost_call(x)
    return any(outermost_call(u) != function for u in _readers(x))


def _readers(x: Instruction) -> Iterator[Instruction]:
    """The users, those of bitcasts and of converts that were put in for these."""
    for user in x.users:
        if user.users and (user.opcode == "bitcast" or is_inserted_convert(user)):
            yield from _readers(user)
        else:
            yield user


def _place_of_call(x: Instruction) -> Hashable | None:
    """The outermost call that `x` is of and where it stands; None for what is no function's."""
    function = outermost_call(x)
    return (function, stack_frame(x)) if function else None


def _without_tuples(inner: list[Instruction], outer: list[Instruction]) -> list[Instruction]:
    """Each call had a tuple of its own, CSE made one value of what several of them computed."""
    listed: list[Instruction | int] = []
    tuples: list[Instruction | int] = []
    seen: set[Hashable] = set()
    for user in inner:
        kind = _kind(user)
        if kind in seen:
            seen.clear()
            tuples.append(len(tuples))
            listed.append(tuples[-1])
        seen.add(kind)
        listed.append(user)
    tuples.append(len(tuples))
    left = without([*listed, tuples[-1], *outer], tuples)
    return [u for u in left if isinstance(u, Instruction)]


def _has_other_results(result: Instruction, function: str) -> bool:
    """Does anything else that the same call computed have users outside?"""
    return _reaches_result(result, function, _read) or _reaches_result(result, function, _readers)


def _read(x: Instruction) -> Iterator[Instruction]:
    """The operands, those of bitcasts and of converts that were put in for these."""
    for operand in x.operands:
        if operand.opcode == "bitcast" or is_inserted_convert(operand):
            yield from _read(operand)
        else:
            yield operand


def _reaches_result(
    start: Instruction, function: str, near: Callable[[Instruction], Iterator[Instruction]]
) -> bool:
    kind = _kind(start)
    found, pending = {start}, [start]
    while pending:
        for x in near(pending.pop()):
            if x in found or outermost_call(x) != function or _kind(x) == kind:
                continue  # the like of it is that of another call
            found.add(x)
            pending.append(x)
            if is_of_program(x) and not is_made_of_nothing(x) and _is_read_outside(x, function):
                return True
    return False


def _is_read_outside(x: Instruction, function: str) -> bool:
    """Is it a result of `function`, and not what another function computed as well?"""
    return any(_may_be_given(outermost_call(u), function) for u in _readers(x))


def _may_be_given(reader: str, function: str) -> bool:
    """Are results of `function` read in `reader`? The derivative of a function is a function of that name."""
    return reader != function and (not reader or _function_name(reader) == _function_name(function))


def _function_name(call: str) -> str:
    return call.rpartition("jit(")[2].partition(")")[0]


def _kind(x: Instruction) -> Hashable:
    return (x.opcode, x.op_name, tuple((o.opcode, o.op_name) for o in x.operands))
