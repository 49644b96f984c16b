"""Values that are written twice in the program and were made one by CSE.

In `((x - mean) ** 2).mean()` and, a line further, `(x - mean) * scale` the difference has no name, so that
either is used by what is written around it and by nothing else. HloCSE keeps the one it meets first
(`xla/service/hlo_cse.cc`) and appends the users of the other to its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_of_derivative, is_on_way_back, scope
from hlofuse.pipelines.names import (
    is_of_older_release,
    is_of_program,
    name_before_renaming,
    operation,
    stack_frame,
)
from hlofuse.pipelines.users.common.ages import came_behind_its_users
from hlofuse.pipelines.users.common.concatenates import is_of_merged
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.extents import (
    Extent,
    callers_of,
    extent_of,
    is_in_lambda,
    places_of_callers,
)
from hlofuse.pipelines.users.duplicates.other_calls import users_in_other_calls
from hlofuse.pipelines.users.duplicates.own_converts import (
    by_place,
    is_converted,
    is_converted_for_one,
    is_of_same_operation,
)
from hlofuse.pipelines.users.products.taken_prologues import leads_to_gemm_with_prologue


def with_twins_users_behind(
    producer: Instruction,
    users: list[Instruction],
    gone: Mapping[tuple[int, int], list[Extent]],
    *,
    ids_known: bool,
) -> list[Instruction]:
    """The users of `producer` with those behind that must have read another like it.

    `gone` are places in the source of which no operation is left, by file and call.
    """
    if is_made_of_nothing(producer) and scope(producer):
        return users  # every function has its own
    if ids_known and is_converted_for_one(producer, users):
        return by_place(producer, users)
    if _is_part_of_operation(producer):
        return sorted(users, key=lambda u: not is_of_same_operation(u, producer))
    if not _may_have_twin(producer, ids_known=ids_known):
        return users
    own: set[Instruction] = set()
    here = extent_of(producer)
    if here is not None:
        places = {u: _place_of(u, producer, here) for u in users}
        own = (
            _users_of_expression(producer, here, places)
            or _users_in_same_call(producer, here, places)
            or _users_in_function(producer, here, places, gone)
            or set(users) - users_in_other_calls(producer, users)
        )
    ages = ids_known and not scope(producer) and is_of_program(producer) and not is_of_older_release(producer)
    # Nothing reads what is younger unless it was given it; what derives that was, too.
    given = [u for u in users if ages and u.id < producer.id and stack_frame(u) != stack_frame(producer)]
    derived = {(stack_frame(u), operation(u)) for u in given if is_of_program(u) and not is_of_derivative(u)}

    def rank(user: Instruction) -> int:
        if own and user not in own:
            return 2
        derives = is_of_program(user) and is_of_derivative(user) and stack_frame(user)
        is_given = ages and (
            user.id < producer.id or (derives and (stack_frame(user), operation(user)) in derived)
        )
        return int(bool(is_given) or _is_operand_computed_before(user, producer, here))

    listed = sorted(users, key=rank)
    # Guessed ids tell no turns of an operation apart: it has to be first without them.
    is_first = stack_frame(listed[0]) == stack_frame(producer)
    return by_place(producer, users) if is_first and is_converted_for_one(producer, users) else listed


def readers_of_twin(x: Instruction) -> list[Instruction]:
    """Those of `x` that must have read another like it, given that they are not around it. Ids are XLA's."""
    here = extent_of(x)
    if here is None or not _may_have_twin(x, ids_known=True):
        return []
    within = [u for u in x.users if _is_operand_computed_before(u, x, here)]
    if within:
        return within  # which converts what it is given itself
    own = _users_of_expression(x, here, {u: _place_of(u, x, here) for u in x.users})
    return [u for u in x.users if u not in own and not is_on_way_back(u)] if own else []


def _place_of(user: Instruction, x: Instruction, here: Extent) -> Extent | None:
    """Where the `user` is; of a reshape of `x` that a pass put in, where it is read if that is around `x`.

    So it is of a broadcast without a name that several read in one place.
    """
    own = extent_of(user)
    if user.opcode == "broadcast" and not user.op_name:
        readers = {extent_of(u) for u in user.users}
        return readers.pop() if len(readers) == 1 else own
    is_put_in = user.opcode == "bitcast" and (not user.op_name or (own == here and user.op_name == x.op_name))
    if is_put_in and len(user.users) == 1:
        reader = extent_of(user.users[0])
        return reader if reader is not None and reader.encloses(here) else own
    return own


def _is_part_of_operation(x: Instruction) -> bool:
    """Did one operation of the framework, such as a product, convert its operand to `x` itself?

    Who else reads `x` has written a convert, which has a name of its own.
    """
    if x.opcode != "convert" or is_converted(x) or not is_of_program(x) or is_of_derivative(x):
        return False
    return stack_frame(x) != 0 and any(is_of_same_operation(u, x) for u in x.users)


def _is_operand_computed_before(user: Instruction, x: Instruction, here: Extent | None) -> bool:
    """Is the user within the expression that converts its operand to `x` when all in it is computed?"""
    if here is None or not is_converted(x) or is_on_way_back(x):
        return False
    while not user.op_name and user.opcode == "bitcast" and len(user.users) == 1:
        (user,) = user.users  # a pass reshapes for what was there
    place = extent_of(user)
    return place is not None and place != here and here.encloses(place)


def _may_have_twin(x: Instruction, *, ids_known: bool) -> bool:
    """Is it as the framework made it? Of what a pass made the place says little."""
    if x.opcode == "fusion":
        return True
    if is_converted(x):
        return True  # wherever it was moved since
    if _is_reshaped_behind(x):
        # A broadcast is made anew when it takes a reshape in: what it read says nothing then.
        return all(u.id < x.id and u.opcode != "broadcast" for u in x.users)
    if not is_of_program(x) or is_of_merged(x):
        return False
    if not ids_known:
        return name_before_renaming(x).number > 0
    # What ReshapeMover made is a clone of what had been there.
    return not is_made_by_pass(x) or (x.opcode in ELEMENTWISE_OPCODES and came_behind_its_users(x, x.users))


def _is_reshaped_behind(x: Instruction) -> bool:
    """Did ReshapeMover put it behind its clone? What was equal before is so after that."""
    moved = x
    while moved.opcode in {"bitcast", "transpose"} and moved.op_name == x.op_name:
        (moved,) = moved.operands
    return moved is not x and moved.op_name == x.op_name and moved.opcode in ELEMENTWISE_OPCODES


def _users_of_expression(
    x: Instruction, here: Extent, places: dict[Instruction, Extent | None]
) -> set[Instruction]:
    """The users around `x` in the program; none if that does not tell them from others."""
    around = {u: place for u, place in places.items() if place is not None and place.encloses(here)}
    of_broadcast = {u for u in around if u.op_name == x.op_name and x.opcode == "broadcast"}
    if of_broadcast:
        # It was made for the first; another call in the same place, and the derivative, had their own.
        return {next(u for u in places if u in of_broadcast)}
    # What stands in exactly the same place is the derivative of `x`.
    if all(place == here for place in around.values()) and not any(_goes_on(u, x) for u in around):
        return set()
    if any(u.opcode == "complex" for u in around):
        return set()  # the front end has who asks for a part of the number read `x` itself, wherever that is
    # Where a Triton fusion took what reads `x` along, its own place does not show.
    return {
        u
        for u, place in places.items()
        if u in around
        or (scope(u) == scope(x) and any(_has_no_room(place, here, wider) for wider in around.values()))
        or _is_called_around(u, here)
        or _bears_place_of_another(u, place)
        or leads_to_gemm_with_prologue(u, x)
    }


def _has_no_room(place: Extent | None, here: Extent, around: Extent | None) -> bool:
    """Is what stands beside `here` in the expression `around` too short for that to be written there again?

    `(m := x * 3) @ tanh(m[0])` gave it a name. A function that is called there may compute the like itself.
    """
    if place is None or around is None or not around.encloses(place):
        return False
    if len({here.start[0], here.end[0], place.start[0], place.end[0]}) > 1:
        return False  # columns tell how long it is on one line
    return place.end[1] - place.start[1] <= here.end[1] - here.start[1]


def _goes_on(u: Instruction, x: Instruction) -> bool:
    """Is it the rest of a sum of several, `- c` of `a + b - c`, which has the place of `a + b`?

    No derivative of a sum reads the sum.
    """
    return (operation(x), operation(u)) == ("add", "sub") and u.operands[0] is x and scope(x) == scope(u)


def _is_called_around(u: Instruction, here: Extent) -> bool:
    """Is it in a function that is called by what stands around the place `here`?"""
    return any(place != here and place.encloses(here) for place in places_of_callers(u))


def _bears_place_of_another(u: Instruction, place: Extent | None) -> bool:
    """Did a pass make it for one further on: a broadcast, or a product merged with one of the derivative?

    That may be named after the broadcast of the other factor.
    """
    if u.opcode == "broadcast":
        return stack_frame(u) != 0 and not is_of_program(u) and operation(u) != "broadcast_in_dim"
    is_merged = not is_of_program(u) or operation(u) == "broadcast_in_dim"
    return u.opcode == "multiply" and is_of_derivative(u) and (place is None or is_merged)


def _users_in_same_call(
    x: Instruction, here: Extent, places: dict[Instruction, Extent | None]
) -> set[Instruction]:
    """The users in the same call of a function as `x`, the others being in other calls of that function.

    These read what they had computed in the same place; `x` is computed from what all calls were given.
    """
    if any(p is None or p.function != here.function for p in places.values()):
        return set()
    if any(_is_in(place, here) for place in map(extent_of, x.operands)):
        return set()
    callers = callers_of(x)
    if any(stack_frame(u) in callers for u in places):
        return set()  # that is not another call: the one around has the same place
    own = {u for u, p in places.items() if _is_in(p, here) or _is_called_within(u, here)}
    # A broadcast is made for one, in every turn of what calls the function.
    return own if x.opcode != "broadcast" or len(own) == 1 else set()


def _is_in(place: Extent | None, here: Extent) -> bool:
    return place is not None and place.context == here.context


def _is_called_within(x: Instruction, here: Extent) -> bool:
    """Is it of the call that the place `here` is in, or of what that calls?"""
    return any(_is_in(place, here) for place in (extent_of(x), *places_of_callers(x)))


def _users_in_function(
    x: Instruction,
    here: Extent,
    places: dict[Instruction, Extent | None],
    gone: Mapping[tuple[int, int], list[Extent]],
) -> set[Instruction]:
    """The users in the function that `x` was converted in: each function converts what it is given.

    All lambdas that are written in one function have the same name. On other lines it takes the place of a
    convert that is gone to tell that there was one.
    """
    if not is_converted(x):
        return set()
    near = {u: p for u, p in places.items() if p is not None}
    own = {u for u, p in near.items() if p.context == here.context and p.function == here.function}
    if is_in_lambda(x) and any(near[u].start[0] != here.start[0] for u in own):
        twins = {u for u in near.keys() - own if any(map(near[u].encloses, gone.get(near[u].context, ())))}
        return own if twins else set()
    # What stands in exactly the same place is of the derivative, which converts no more than it is given.
    if any(near[u] == here for u in own) or all(p.function == here.function for p in near.values()):
        return set()
    return own
