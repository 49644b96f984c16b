"""The users of values in functions that were calls in the program, such as jit(silu).

CallInliner (`xla/service/call_inliner.cc`) clones the body of a function operands first, so that inside
of it age and the order of users agree; who uses a result outside comes behind them. A function with
several results ends in a tuple, which is a user of each as well. It goes when its elements have found
their users, and the last user takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.names import (
    is_called_once,
    is_loop_of_one_turn,
    is_of_program,
    name_before_renaming,
    outermost_call,
    scope,
    stack_frame,
)
from hlofuse.pipelines.users.calls.equal_calls import merged_twins, with_twins_users_merged
from hlofuse.pipelines.users.common.ages import (
    MADE_ANEW,
    is_choice_of_remainder,
    was_division,
    with_clones_by_age,
)
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.copies import was_bitcast_copied
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.common.windows import is_cut_from_windows
from hlofuse.pipelines.users.duplicates.merged_constants import in_order_of_merging
from hlofuse.pipelines.users.duplicates.source_expressions import extent_of
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert, is_narrowing
from hlofuse.pipelines.users.floats.widened import served_by

_TRANSPOSED = re.compile(r"(?<![^/])transpose\((jvp\([^/]*\))\)(?=/|$)")


def in_order_of_calls(
    producer: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    *,
    passes: int | None,
) -> list[Instruction]:
    """The users of `producer` with those in the same function first, by age if it is known.

    `passes` is the first id of what a pass made anew (`first_made_anew`), None where ids are not known.
    """
    source = producer.operands[0] if is_narrowing(producer) else producer
    if is_made_of_nothing(source):
        return in_order_of_merging(source, users, passes=passes)
    function = outermost_call(source)
    if is_cut_from_windows(source):
        return _with_calls_inlined(users, "", order, passes)
    if was_bitcast_copied(source):
        return users
    if not source.op_name and not _is_element_of_program(source, passes):
        return users  # a pass made it; no call was given it
    if not function:
        return _with_calls_inlined(users, "", order, passes)
    served = {u: served_by(u) for u in users}
    within = {u for u, it in served.items() if is_of_same_call(it, source, function)}
    inner = [u for u in users if u in within]
    outer = [u for u in users if u not in within]
    twins = merged_twins(inner, outer, function)
    if twins:
        return with_twins_users_merged(inner, outer, twins)
    outer = _with_calls_inlined(outer, function, order, passes)
    if passes is not None:
        inner = with_clones_by_age(inner, served, range(source.id, passes))
    inner = _as_call_within_leaves_it(source, inner, function)
    if outer and _is_result_of_nested(source, function):
        return [outer[-1], *inner, *outer[:-1]]
    if (
        outer
        and not _is_computed_of_nothing(source)
        and not (inner and _is_cotangent(source, function))
        and (is_loop_of_one_turn(source) or _has_other_results(source, function))
    ):
        own, elsewhere = _by_place_of_call(source, inner, outer)
        return _with_other_calls_merged(_without_tuples(inner, own), elsewhere, len(inner))
    return [*inner, *outer]


def _as_call_within_leaves_it(
    result: Instruction, users: list[Instruction], function: str
) -> list[Instruction]:
    """The users in `function` of what a call in that computed, and another value of the same operands too."""
    call = scope(result)
    if not call or call == function or any(scope(served_by(u)) == call for u in users):
        return users
    has_others = any(scope(x) == call for x in _twins(result)) or _is_recomputed_for_derivative(result, call)
    return last_in_front(users) if has_others else users


def _is_recomputed_for_derivative(result: Instruction, call: str) -> bool:
    """Does the derivative of a call that is made again (`jax.checkpoint`) need what `result` is made of?

    JAX gives those results of the call, whose derivative is a call outside of what is made again.
    """
    derivative = call.replace("/rematted_computation/", "/")
    if derivative == call:
        return False
    found, pending = {result}, [result]
    while pending:
        near = {o for o in _operands(pending.pop()) if o not in found and scope(o) == call}
        if any(scope(u) == derivative for o in near for u in _readers(o)):
            return True
        found |= near
        pending += near
    return False


def _is_result_of_nested(result: Instruction, function: str) -> bool:
    """Did a call within the `function` compute it, for that and for its derivative, and not read it itself?

    The tuple of the call around took the place of that of the nested one, the last user that of the former.
    """
    call = scope(result)
    if not was_division(result) or not _is_read_in_transpose(result, function):
        return False
    if all(is_made_of_nothing(o) or not (scope(o) or "").startswith(call or "") for o in result.operands):
        return False  # there is nothing else that the derivative might need
    return call != function and all(scope(served_by(u)) != call for u in result.users)


def _is_cotangent(x: Instruction, function: str) -> bool:
    """Is it of a derivative, of which nothing reads the results but who called it?

    Who reads it elsewhere as well had one like it, until CSE made them one.
    """
    is_derivative = function.rpartition("/")[2].startswith("transpose(")
    return is_derivative and x.shape.element_type in FLOATING_TYPES


def _is_element_of_program(x: Instruction, passes: int | None) -> bool:
    """Is it an element of what the body of a loop is given, or of a result, not made by a pass?

    It has no op_name then, and that of a result is named after what that is of.
    """
    if x.opcode != "get-tuple-element":
        return False
    if x.operands[0].opcode != "parameter":
        return name_before_renaming(x).root != x.opcode
    return passes is not None and x.id < passes


def is_of_same_call(x: Instruction, source: Instruction, function: str) -> bool:
    """Was `x` cloned with `source`, out of one call of `function`?"""
    if x.opcode == "bitcast":  # it bears the name of what it was put behind
        readers = [u for u in x.users if u.op_name] or [x.operands[0]]
        within = all(outermost_call(u) == function and u.opcode != "bitcast" for u in readers)
        return bool(x.op_name and x.users and within)
    if outermost_call(x) != function:
        return False
    if not (_is_result(source) and _leads_to_like(source, x, function)):
        return True
    return is_called_once(source) and not _is_unrolled(source)


def _is_unrolled(x: Instruction) -> bool:
    """Is the function of its body called for several turns at once (`scan` with `unroll`)?

    The body takes the turns' parts out of what it takes at the index, and puts their results together again.
    """
    around = outermost_call(x).rpartition("/")[0]
    ends = {f"{around}/slice", f"{around}/concatenate"}
    return x.computation is not None and any(
        i.opcode in {"slice", "concatenate"} and (i.op_name or "").partition("/")[2] in ends
        for i in x.computation
    )


def _leads_to_like(result: Instruction, start: Instruction, function: str) -> bool:
    """Is `start` of a call that has no other result than one like `result`? Then it is another call."""
    found, pending, again = {start}, [start], False
    while pending:
        x = pending.pop()
        if (x.opcode, x.op_name, x.shape) == (result.opcode, result.op_name, result.shape):
            again = again or not x.users or _is_result(x)
            continue
        if _is_result(x):
            return False
        near = [u for u in x.users if outermost_call(u) == function and u not in found]
        found.update(near)
        pending += near
    return again


def _with_calls_inlined(
    users: list[Instruction], function: str, order: dict[Instruction, int], passes: int | None
) -> list[Instruction]:
    """Each call was a user itself; its clones came behind all, the last of them into its place."""
    calls: dict[tuple[Hashable, int], list[Instruction]] = {}
    results: dict[Hashable, list[frozenset[Instruction]]] = {}
    listed: list[Instruction | tuple[Hashable, int]] = []
    clone_of = {u: _clone(u) for u in users}
    for user, clone in clone_of.items():
        place = _place_of_call(clone, function) if clone.opcode != "bitcast" else None
        if place is None:
            listed.append(user)
            continue
        # The same result again, of other operands, is another call's from the same place.
        same = results.setdefault((place, _kind_in_call(clone)), [])
        operands = frozenset(clone.operands)
        call = (place, same.index(operands) if operands in same else len(same))
        if call[1] == len(same) and _is_result(clone):
            same.append(operands)
        if call not in calls:
            listed.append(call)
        calls.setdefault(call, []).append(user)
    if passes is not None:
        for call, clones in calls.items():
            calls[call] = with_clones_by_age(clones, clone_of, range(passes))
        # They were inlined in the order in which they stood.
        ages = {c: clone_of[them[0]].id for c, them in calls.items() if them[0].opcode not in MADE_ANEW}
        slots = iter(sorted(ages, key=ages.__getitem__))
        listed = [next(slots) if x in ages else x for x in listed]
        calls = {call: calls[call] for call in listed if not isinstance(call, Instruction)}
    gone: list[tuple[Hashable, int]] = []
    for call, clones in calls.items():
        given = [(x, -1) for x in _slices_given_to(clones, users)]
        place = listed.index(call)
        listed[place:place] = given
        gone += given
    for twin, read in _given_to_other_calls(calls, order):
        first: dict[Hashable, int] = {x: order[x] for x in listed if isinstance(x, Instruction)}
        first |= {call: order[clones[0]] for call, clones in calls.items()}
        place = next((k for k, x in enumerate(listed) if first.get(x, -1) > read), len(listed))
        gone.append((twin, -2))
        listed.insert(place, gone[-1])
    for call, clones in calls.items():
        listed = without([*listed, *clones], [call])
    return [u for u in without(listed, gone) if isinstance(u, Instruction)]


def _slices_given_to(clones: list[Instruction], users: list[Instruction]) -> list[Instruction]:
    """What of `users` is a slice in another call, and was taken anew for the call the `clones` are of.

    CSE kept the one of the other call.
    """
    function = outermost_call(clones[0])
    operands = [o for clone in clones for o in clone.operands]
    return [
        u
        for u in dict.fromkeys(operands)
        if u.opcode == "slice"
        and u in users
        and outermost_call(u) not in {"", function}
        and any(outermost_call(v) == outermost_call(u) for v in u.users)
    ]


def _given_to_other_calls(
    calls: dict[tuple[Hashable, int], list[Instruction]], order: dict[Instruction, int]
) -> Iterator[tuple[Instruction, int]]:
    """What a call made and its caller as well, which gave it to a second call, and where that reads it.

    CSE kept the one of the first call; the other had stood among the users outside. Only who calls a
    derivative reads what it results in, so that it is none of the results.
    """
    for x in (_clone(u) for clones in calls.values() for u in clones):
        function = outermost_call(x)
        if not _is_cotangent(x, function) or any(outermost_call(o) == function for o in x.operands):
            continue
        readers = list(_readers(x))
        others = [order[v] for v in readers if outermost_call(v) not in {"", function}]
        if others and any(outermost_call(v) == function for v in readers):
            yield x, min(others)


def _clone(user: Instruction) -> Instruction:
    """What was cloned out of a call: the user, or what it was put in front of."""
    clone = served_by(user)
    if clone.opcode == "bitcast" and len(clone.users) == 1 and outermost_call(clone) == "":
        return clone.users[0]
    return clone


def _is_result(x: Instruction) -> bool:
    function = outermost_call(x)
    return any(outermost_call(v) != function for v in _readers(x))


def _readers(x: Instruction, but: Instruction | None = None) -> Iterator[Instruction]:
    """What reads `x`, or what passes put behind it; not `but`, nor what reads that."""
    for user in x.users:
        if user is but:
            continue
        if user.opcode == "bitcast" or is_inserted_convert(user):
            yield from user.users
        else:
            yield user


def _place_of_call(x: Instruction, around: str) -> Hashable | None:
    """Where what `x` is of was called, outside of the function `around`; None for what is no function's.

    The body of a loop is called in one place, wherever its own lines are.
    """
    function = outermost_call(x)
    if not function or function == around or is_choice_of_remainder(x):
        return None
    return function, "" if is_called_once(x) else stack_frame(x)


def _by_place_of_call(
    source: Instruction, inner: list[Instruction], outer: list[Instruction]
) -> tuple[list[Instruction], list[list[Instruction]]]:
    """The users outside of the function in the place that called it, and those in each other that did.

    What read it in those calls is gone: the `inner` users are all of this one.
    """
    here = extent_of(source)
    extents = {u: extent_of(served_by(u)) for u in (*inner, *outer)}
    if here is None or any(extent is None or extent.function != here.function for extent in extents.values()):
        return outer, []
    places = {u: extent.context for u, extent in extents.items() if extent is not None}
    own = [u for u in outer if places[u] == here.context]
    if not own or any(places[u] != here.context for u in inner):
        return outer, []
    groups: dict[Hashable, list[Instruction]] = {}
    for u in outer:
        if u not in own:
            groups.setdefault(places[u], []).append(u)
    return own, list(groups.values())


def _with_other_calls_merged(
    users: list[Instruction], elsewhere: list[list[Instruction]], inner: int
) -> list[Instruction]:
    """The users of a result of a call, the first, with those that equal calls' results had outside.

    Each had a tuple. HloCSE (`xla/service/hlo_cse.cc`) gave them to the first result, and what read it in the
    other calls, as many as the `inner` users here, went after that, as there was the like of each.
    """
    for outer in elsewhere:
        gone = [object() for _ in range(inner)]
        listed: list[object] = [*users, *gone, *last_in_front(outer)]
        users = [u for u in without(listed, gone) if isinstance(u, Instruction)]
    return users


def _without_tuples(inner: list[Instruction], outer: list[Instruction]) -> list[Instruction]:
    """Each call had a tuple of its own, CSE made one value of what several of them computed."""
    listed: list[Instruction | int] = []
    tuples: list[Instruction | int] = []
    seen: set[Hashable] = set()
    for user in inner:
        kind = _kind(user)
        if kind in seen and not is_called_once(user):
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
    return any(_reaches_result(result, function, near) for near in (_operands, _readers, _twins))


def _operands(x: Instruction) -> list[Instruction]:
    return [o.operands[0] if is_inserted_convert(o) else o for o in x.operands]


def _twins(x: Instruction) -> list[Instruction]:
    """What the same operation, written once, makes of the same operands in another order."""
    operands = set(x.operands)
    others = (u for o in x.operands if not is_made_of_nothing(o) for u in o.users if u is not x)
    return [u for u in others if u.op_name == x.op_name and operands == set(u.operands)]


def _reaches_result(
    start: Instruction, function: str, near: Callable[[Instruction], Iterable[Instruction]]
) -> bool:
    kind = _kind(start)
    found, pending = {start}, [start]
    # That is the same result. Of what a library's matrix product reads the last is in front all the same.
    if start.opcode == "bitcast" and all(u.opcode != "custom-call" for u in start.users):
        found.update(start.operands)
    while pending:
        for x in near(pending.pop()):
            if x in found or _kind(x) == kind or _is_of_next_call(x, start, function):
                continue  # the like of it is that of another call
            if outermost_call(x) != function:
                if _is_same_function(x, function) and _is_read_in_transpose(x, function):
                    return True
                continue
            found.add(x)
            pending.append(x)
            # CSE made one of what all calls compute of nothing.
            computed = is_of_program(x) or (was_division(x) and is_of_program(start))
            if computed and _is_read_behind(x, function, start) and not _is_computed_of_nothing(x):
                return True
    return False


def _is_of_next_call(x: Instruction, result: Instruction, function: str) -> bool:
    """Is `x` the same operation, given the `result` of one call and a value of outside of calls?"""
    if result not in x.operands or (x.opcode, x.op_name) != (result.opcode, result.op_name):
        return False
    others = (o for o in x.operands if o is not result and not is_made_of_nothing(o))
    return not is_called_once(x) and any(outermost_call(o) != function for o in others)


def _is_same_function(x: Instruction, call: str) -> bool:
    """Is it of this call of a function, or of another? CSE made one of what several of them computed."""
    return _called(outermost_call(x)) == _called(call)


def _is_read_in_transpose(x: Instruction, call: str) -> bool:
    """Was it kept for the derivative of the call?"""
    transposed = {outermost_call(u) for u in _readers(x)} - {call}
    return any(_of_transpose(it) == call for it in transposed)


def _of_transpose(call: str) -> str:
    """The call of which this is the transpose; otherwise as it is."""
    return _TRANSPOSED.sub(r"\1", call)


def _is_computed_of_nothing(x: Instruction) -> bool:
    """Does it depend on nothing that a call is given, through element-wise operations, as an index does?

    What calls of a function compute of nothing CSE made one, whichever it was of.
    """
    found, pending, call = {x}, [x], outermost_call(x)
    while pending:
        x = pending.pop()
        if is_made_of_nothing(x):
            continue
        if x.opcode != "broadcast" and x.opcode not in ELEMENTWISE_OPCODES:
            return False
        if not _is_same_function(x, call):
            return False
        pending += [o for o in x.operands if o not in found]
        found.update(x.operands)
    return True


def _called(call: str) -> str:
    """The function that was called, by whatever transformation of it."""
    return call.rpartition("jit(")[2].rstrip(")")


def _is_read_behind(x: Instruction, function: str, result: Instruction) -> bool:
    """Is it read where the function was called? In another function the like of it may have been.

    What reads `result`, which a pass may have put behind it, does not count.
    """
    readers = list(_readers(x, but=result))
    calls = {outermost_call(u) for u in readers} - {function}
    if "" in calls or ("jvp(" in function and bool(calls)):
        return True
    return x in _twins(result) and any(_is_like_elsewhere(u, x) for u in readers)


def _is_like_elsewhere(user: Instruction, x: Instruction) -> bool:
    """Is it the same operation in another place? Then it is of another call of the function."""
    of_both = user.opcode == x.opcode and user.op_name == x.op_name
    return of_both and stack_frame(user) != stack_frame(x)


def _kind_in_call(x: Instruction) -> Hashable:
    """What tells it from others of a call: of a choice that is also what the call itself decides it by."""
    kind = (x.opcode, x.op_name)
    if is_called_once(x):
        function = outermost_call(x)
        if scope(x) != function:
            return (*kind, stack_frame(x))  # it may be called in several places
        computed = (o.op_name for o in x.operands if outermost_call(o) == function)
        return (*kind, stack_frame(x), *computed)
    if x.opcode != "select" or outermost_call(x.operands[0]) != outermost_call(x):
        return kind
    return (*kind, x.operands[0].op_name)


def _kind(x: Instruction) -> Hashable:
    return (x.opcode, x.op_name, tuple((o.opcode, o.op_name) for o in x.operands))
