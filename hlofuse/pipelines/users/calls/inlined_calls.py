"""The users of values in functions that were calls in the program, such as jit(silu).

CallInliner (`xla/service/call_inliner.cc`) clones the body of a function operands first, so that inside
of it age and the order of users agree; who uses a result outside comes behind them. A function with
several results ends in a tuple, which is a user of each as well. It goes when its elements have found
their users, and the last user takes its place. WhileLoopConstantSinking
(`xla/service/while_loop_constant_sinking.cc`) clones the body of a loop since, and no place is left there.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import (
    function_called,
    is_called_once,
    is_cloned_whole,
    is_loop_of_one_turn,
    is_of_derivative,
    outermost_call,
    scope,
)
from hlofuse.pipelines.names import name_before_renaming, operation
from hlofuse.pipelines.users.calls.called_within import apart_from_other_callers
from hlofuse.pipelines.users.calls.clones import is_cotangent, is_of_later_call, is_of_same_call
from hlofuse.pipelines.users.calls.equal_calls import merged_in_nested, merged_twins, with_twins_users_merged
from hlofuse.pipelines.users.calls.given_together import has_result_given_the_same
from hlofuse.pipelines.users.calls.given_twice import readers_of_second
from hlofuse.pipelines.users.calls.inlined_outside import with_calls_inlined
from hlofuse.pipelines.users.calls.loop_elements import is_read_in_changed_body
from hlofuse.pipelines.users.calls.nested_calls import as_call_within_leaves_it, as_nested_tuples_leave_it
from hlofuse.pipelines.users.calls.read_through_bitcasts import (
    behind_bitcasts,
    is_of_unnamed_call,
    is_read_reshaped,
    is_read_row_major,
)
from hlofuse.pipelines.users.calls.results import (
    Results,
    is_computed_of_nothing,
    is_read_in_transpose,
    kind_of,
)
from hlofuse.pipelines.users.calls.selected_branches import is_of_inlined_branch, with_branches_together
from hlofuse.pipelines.users.calls.sliced_results import with_last_in_place_of_slice
from hlofuse.pipelines.users.calls.unrolled_loops import is_made_again, is_stacked
from hlofuse.pipelines.users.common.ages import (
    was_division,
    with_clones_by_age,
)
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.copies import was_bitcast_copied
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.common.windows import is_cut_from_windows
from hlofuse.pipelines.users.duplicates.merged_constants import in_order_of_merging
from hlofuse.pipelines.users.floats.inserted_converts import is_narrowing
from hlofuse.pipelines.users.floats.widened import served_by


def in_order_of_calls(
    producer: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    results: Results,
    *,
    passes: int | None,
    guessed: int | None = None,
) -> list[Instruction]:
    """The users of `producer` with those in the same function first, by age if it is known.

    `passes` is the first id of what a pass made anew (`first_made_anew`), None where ids are not known;
    `guessed` is the same of ids that are guessed, if calls are likely to be together in them.
    """
    source = producer.operands[0] if is_narrowing(producer) else producer
    if is_made_of_nothing(source):
        return in_order_of_merging(source, users, passes=guessed if passes is None else passes)
    function = outermost_call(source)
    if is_cut_from_windows(source):
        return with_calls_inlined(users, "", order, passes)
    if was_bitcast_copied(source) or is_read_row_major(source) or is_read_reshaped(source):
        return users
    if not source.op_name and not _is_element_of_program(source, passes):
        return users  # a pass made it; no call was given it
    if passes is not None and all(map(is_of_inlined_branch, (source, *map(served_by, users)))):
        return users  # the branch came in as a whole, with what it had called in it
    if not function and is_of_unnamed_call(source):
        return users
    if not function and _are_of_call_of(source, users):
        return users
    if not function:
        second = readers_of_second(source, users, order)
        users = [u for u in users if u not in second]
        return [*with_calls_inlined(users, "", order, passes), *second]
    served = {u: served_by(u) for u in users}
    within = {
        u
        for u, it in served.items()
        if is_of_same_call(it, source, function) and not is_of_later_call(it, source, function, order)
    }
    inner = [u for u in users if u in within]
    outer = [u for u in users if u not in within]
    twins = merged_twins(inner, outer, function)
    if twins:
        return with_twins_users_merged(inner, outer, twins)
    if not outer and (listed := merged_in_nested(source, inner)):
        return listed
    is_likely = inner and outer and not is_computed_of_nothing(source)
    if is_likely and all(_is_like_inner(u, inner, source) for u in outer):
        return [*inner, *outer]
    outer = with_calls_inlined(outer, function, order, passes)
    if passes is not None:
        is_nested = any(_around(served[u]) != _around(source) for u in inner)
        first = source if is_nested else behind_bitcasts(source)
        inner = with_clones_by_age(inner, served, range(first.id, passes))
    elif guessed is not None and _are_in_one_run([served[u] for u in inner], function):
        inner = with_clones_by_age(inner, served, range(source.id, guessed))
    in_call = sorted(inner, key=is_stacked)
    inner = as_call_within_leaves_it(source, in_call, function, results)
    if source.computation is not None and is_cloned_whole(source.computation):
        return [*inner, *outer]  # the tuples had gone by then
    if source.opcode == "bitcast" and not inner:
        return outer  # it was put in front of what reads it: no tuple had it
    if _is_carried_and_stacked(outer):
        return [*inner, *outer]
    if outer and _is_result_of_nested(source, function):
        return [outer[-1], *inner, *outer[:-1]]
    if (
        outer
        and not is_computed_of_nothing(source)
        and not (inner and is_cotangent(source, function))
        and _ends_in_tuple(source, function, results, ids_known=passes is not None)
    ):
        if is_loop_of_one_turn(source) and all(map(is_made_again, outer)):
            return [*inner, *outer]  # HloCSE gave it those of what was the same there: it is no result
        outer = with_branches_together(source, outer)
        outer = with_last_in_place_of_slice(source, outer, order)
        own, elsewhere = _by_place_of_call(source, inner, outer)
        nested = as_nested_tuples_leave_it(source, in_call, own, function, results)
        listed = _without_tuples(inner, own) if nested is None else nested
        listed = _with_other_calls_merged(listed, elsewhere, len(inner))
        return last_in_front(listed) if is_stacked(source) else listed
    return [*inner, *outer]


def _are_of_call_of(element: Instruction, users: list[Instruction]) -> bool:
    """Is it an element of what a sort gives, and are all its users in the same call as that?

    It bears no name that would tell, as MLIR has none for elements.
    """
    if element.opcode != "get-tuple-element" or element.operands[0].opcode != "sort":
        return False
    call = outermost_call(element.operands[0])
    return bool(call) and all(outermost_call(served_by(u)) == call for u in users)


def _is_carried_and_stacked(users: list[Instruction]) -> bool:
    """Does the body of a loop give the result to its next turn, and write it, reshaped, into an array?

    The tuple of the call had it twice: the elements found their users one after the other, what is carried
    first.
    """
    if {u.opcode for u in users} != {"bitcast", "tuple"}:
        return False
    return any(u.computation is not None and u is u.computation.root for u in users)


def _ends_in_tuple(result: Instruction, function: str, results: Results, *, ids_known: bool) -> bool:
    """Did the call that computed `result` have others, or was it a loop's body, which has?"""
    if is_loop_of_one_turn(result) or results.has_others(result, function):
        return True
    return ids_known and has_result_given_the_same(result, function, outermost_call)


def _around(x: Instruction) -> str:
    """What all of the op_name tells that is around `x`, functions without a name and loops included."""
    return (x.op_name or "").rpartition("/")[0]


def _are_in_one_run(clones: list[Instruction], function: str) -> bool:
    """Does the guess have nothing but the `function` between these ids? Then none was taken for a pass's."""
    ids = [x.id for x in clones]
    first, last = min(ids, default=0), max(ids, default=0)
    return all(
        is_made_of_nothing(x) or outermost_call(x) == function
        for x in (clones[0].computation or () if last - first > 1 else ())
        if first < x.id < last
    )


def _is_like_inner(u: Instruction, inner: list[Instruction], source: Instruction) -> bool:
    """Does another call of its function, from elsewhere, read `source` as one of the `inner` users does?

    It read one of its own, which no call results in, until HloCSE made all of them one.
    """
    reader = served_by(u)
    if is_of_derivative(reader) or function_called(reader) != function_called(source):
        return False
    return any(_way_of_reading(u, source) == _way_of_reading(v, source) for v in inner)


def _way_of_reading(user: Instruction, source: Instruction) -> Hashable:
    reader = served_by(user)
    places = tuple(k for k, o in enumerate(reader.operands) if o is source)
    return reader.opcode, operation(reader), places if reader is user else ()


def _is_result_of_nested(result: Instruction, function: str) -> bool:
    """Did a call within the `function` compute it, for that and for its derivative, and not read it itself?

    The tuple of the call around took the place of that of the nested one, the last user that of the former.
    """
    call = scope(result)
    if not was_division(result) or not is_read_in_transpose(result, function):
        return False
    if all(is_made_of_nothing(o) or not (scope(o) or "").startswith(call or "") for o in result.operands):
        return False  # there is nothing else that the derivative might need
    return call != function and all(scope(served_by(u)) != call for u in result.users)


def _is_element_of_program(x: Instruction, passes: int | None) -> bool:
    """Is it an element of what the body of a loop is given, or of a result, not made by a pass?

    It has no op_name then, and that of a result is named after what that is of. Of a body that was changed
    the elements were made anew.
    """
    if x.opcode != "get-tuple-element":
        return False
    if x.operands[0].opcode != "parameter":
        return name_before_renaming(x).root != x.opcode
    return passes is not None and (x.id < passes or is_read_in_changed_body(x))


def _by_place_of_call(
    source: Instruction, inner: list[Instruction], outer: list[Instruction]
) -> tuple[list[Instruction], list[list[Instruction]]]:
    """The users outside of the function in the place that called it, and those in each other that did.

    What read it in those calls is gone: the `inner` users are all of this one.
    """
    here = extent_of(source)
    own, elsewhere = apart_from_other_callers(source, outer)
    if elsewhere:
        return own, elsewhere
    extents = {u: extent_of(served_by(u)) for u in (*inner, *outer)}
    derived = [u for u in outer if extents[u] == here]
    others = [u for u in outer if u not in derived]
    if any(extents[u] is None for u in others):
        return outer, []  # simplification made one operation of several, which has no place
    if here is not None and derived and not inner and {scope(u) for u in others} == {scope(derived[0])}:
        by_place: dict[Hashable, list[Instruction]] = {}
        for u in others:  # they derive the function in other places, and each call there had a result
            by_place.setdefault(extents[u], []).append(u)
        return derived, list(by_place.values())
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
    """Each call had a tuple of its own, CSE made one value of what several of them computed.

    What is alike in two calls has one place in the source; one call may do the like in several.
    """
    listed: list[Instruction | int] = []
    tuples: list[Instruction | int] = []
    seen: set[Hashable] = set()
    for user in inner:
        kind = _kind_in_call(user)
        if kind in seen and not is_called_once(user):
            seen.clear()
            tuples.append(len(tuples))
            listed.append(tuples[-1])
        seen.add(kind)
        listed.append(user)
    tuples.append(len(tuples))
    left = without([*listed, tuples[-1], *outer], tuples)
    return [u for u in left if isinstance(u, Instruction)]


def _kind_in_call(user: Instruction) -> Hashable:
    """What another call makes as well, wherever from, at the same place and of the same part of a value."""
    extent = extent_of(user)
    return kind_of(user), extent and extent[1:], str(user.attributes.get("slice"))
