"""The users of a value that calls are given: each call was one itself, until it was inlined."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import MADE_ANEW
from hlofuse.pipelines.calls_in_names import is_called_once, outermost_call, scope
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.calls.clones import clone_of, is_cotangent, is_result, readers_of
from hlofuse.pipelines.users.common.ages import is_choice_of_remainder, was_two, with_clones_by_age
from hlofuse.pipelines.users.common.holes import without


def with_calls_inlined(
    users: list[Instruction], function: str, order: dict[Instruction, int], passes: int | None
) -> list[Instruction]:
    """Each call was a user itself; its clones came behind all, the last of them into its place."""
    calls: dict[tuple[Hashable, int], list[Instruction]] = {}
    results: dict[Hashable, list[frozenset[Instruction]]] = {}
    listed: list[Instruction | tuple[Hashable, int]] = []
    cloned = {u: clone_of(u) for u in users}
    for user, clone in cloned.items():
        place = _place_of_call(clone, function) if clone.opcode != "bitcast" else None
        if place is None:
            listed.append(user)
            continue
        # The same result again, of other operands, is another call's from the same place.
        same = results.setdefault((place, _kind_in_call(clone)), [])
        operands = frozenset(clone.operands)
        call = (place, same.index(operands) if operands in same else len(same))
        if call[1] == len(same) and is_result(clone):
            same.append(operands)
        if call not in calls:
            listed.append(call)
        calls.setdefault(call, []).append(user)
    if passes is not None:
        for call, clones in calls.items():
            calls[call] = with_clones_by_age(clones, cloned, range(passes))
    # They were inlined in the order in which they stood.
    ages = {c: cloned[them[0]].id for c, them in calls.items() if not _is_made_since(them[0], cloned)}
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


def _is_made_since(user: Instruction, cloned: dict[Instruction, Instruction]) -> bool:
    """Does the id of what was cloned not tell when that was, as a pass may have made it?"""
    return user.opcode in MADE_ANEW or was_two(cloned[user])


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
    for x in (clone_of(u) for clones in calls.values() for u in clones):
        function = outermost_call(x)
        if not is_cotangent(x, function) or any(outermost_call(o) == function for o in x.operands):
            continue
        readers = list(readers_of(x))
        others = [order[v] for v in readers if outermost_call(v) not in {"", function}]
        if others and any(outermost_call(v) == function for v in readers):
            yield x, min(others)


def _place_of_call(x: Instruction, around: str) -> Hashable | None:
    """Where what `x` is of was called, outside of the function `around`; None for what is no function's.

    The body of a loop is called in one place, wherever its own lines are.
    """
    function = outermost_call(x)
    if not function or function == around or is_choice_of_remainder(x):
        return None
    return function, "" if is_called_once(x) else stack_frame(x)


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
