"""Predicates that were spread anew for every select, as the framework does where it batches a condition.

HloCSE (`xla/service/hlo_cse.cc`) kept the first, and gave it the users of the others as it met these.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_called, is_of_derivative, outermost_call
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.holes import last_at
from hlofuse.pipelines.users.common.numbers import Numbers
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert


def with_selects_where_met(
    predicate: Instruction, users: list[Instruction], order: dict[Instruction, int], uses: Uses
) -> list[Instruction]:
    """The users of such a `predicate`: a walk comes to it ahead of what is chosen from.

    A function that chooses, such as `where`, spreads it once, for its derivative as well.
    """
    if predicate.opcode != "broadcast" or is_constant(predicate):
        return users
    if operation(predicate) != "broadcast_in_dim":
        return users
    if any(u.opcode != "select" or u.operands[0] is not predicate for u in users):
        return users
    if is_of_called(predicate):
        return _with_derivatives_behind(predicate, users, order, uses)
    if _are_of_one_choice(users):
        return users
    return sorted(users, key=lambda u: uses[predicate, u])


def _with_derivatives_behind(
    predicate: Instruction, users: list[Instruction], order: dict[Instruction, int], uses: Uses
) -> list[Instruction]:
    """The users, where calls of a function spread it, each for a choice and the derivative of that.

    Of several calls in one place the first is derived last; `order` is the post-order. CallInliner and
    HloCSE leave the two together, where the walk met the choice.
    """
    computed = sorted(users, key=order.__getitem__)
    derivatives: dict[Instruction, Instruction] = {}
    for place in {stack_frame(u) for u in users}:
        here = [u for u in computed if stack_frame(u) == place]
        chosen = [u for u in here if not is_of_derivative(u)]
        derived = [u for u in here if is_of_derivative(u)]
        if not place or len(chosen) != len(derived):
            return users
        derivatives |= zip(chosen, reversed(derived), strict=True)
    if len(derivatives) < 2:
        return users
    met = sorted(derivatives, key=lambda u: uses[predicate, u])
    own = min(derivatives, key=lambda u: (u.id < predicate.id, u.id))
    if own is not met[0]:
        return users  # it was another that HloCSE kept: the walk was another, too
    return [x for choice in met for x in (choice, derivatives[choice])]


def _are_of_one_choice(users: list[Instruction]) -> bool:
    """Are they a choice of the program and its derivative, which chooses by what was spread for that?"""
    if len({stack_frame(u) for u in users}) > 1 or not all(map(is_of_program, users)):
        return False
    return {is_of_derivative(u) for u in users} == {False, True}


def with_nested_selects_behind(
    predicate: Instruction, users: list[Instruction], numbers: Numbers
) -> list[Instruction]:
    """The users of a `predicate` that a function computed for each of two selects, one within the other.

    A walk comes to that of the outer select first, and HloCSE gave it the users of the other. Either had what
    the derivative chooses by it behind, from where the result of the call was read.
    """
    inner = _nested_selects(predicate) or _select_of_divisor(predicate, numbers)
    inner = inner or _select_of_expansion(predicate, numbers)
    return sorted(predicate.users, key=lambda u: u in inner) if inner else users


def with_last_in_place_of_predicate(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of what is compared for such a predicate, the last in place of the other comparison."""
    place = next((k for k, u in enumerate(users, 1) if u.operands[0] is x and _nested_selects(u)), None)
    return users if place is None else last_at(users, place)


def _select_of_divisor(predicate: Instruction, numbers: Numbers) -> frozenset[Instruction]:
    """The one of two selects by `predicate` that the other chooses a quotient by, so that none is by zero.

    What was computed for it had been made just before, as the number in front of the predicate's tells. One
    that is written somewhere else than where the other chooses was computed once.
    """
    root, number = name_before_renaming(predicate)
    if predicate.opcode != "compare" or not is_of_program(predicate) or number - 1 in numbers[root]:
        return frozenset()
    selects = [u for u in predicate.users if u.opcode == "select" and u.operands[0] is predicate]
    if number < 2 or len(selects) != 2 or len(predicate.users) != 2:
        return frozenset()
    divisors = {o.operands[1] for u in selects for o in u.operands if o.opcode == "divide"}
    here, places = extent_of(predicate), [extent_of(u) for u in selects if u not in divisors]
    if here is not None and not any(place is not None and place.encloses(here) for place in places):
        return frozenset()
    return frozenset(divisors.intersection(selects))


def _select_of_expansion(predicate: Instruction, numbers: Numbers) -> frozenset[Instruction]:
    """The one of two selects by `predicate` within the other, where all three are of one of the framework's
    operations, which compared again for it, as `nextafter` does; the number behind the predicate's tells.
    """
    root, number = name_before_renaming(predicate)
    users = predicate.users
    if predicate.opcode != "compare" or root != operation(predicate) or number + 1 in numbers[root]:
        return frozenset()
    if len(users) != 2 or any(name_before_renaming(u).root != root for u in users):
        return frozenset()
    if any(u.opcode != "select" or u.operands[0] is not predicate for u in users):
        return frozenset()
    return frozenset(u for u in users if any(u in v.operands for v in users))


def _nested_selects(predicate: Instruction) -> frozenset[Instruction]:
    """Those of two selects by `predicate` in one call that the other chooses a function of.

    What the derivative chooses is nested the other way round.
    """
    if predicate.opcode != "compare" or not outermost_call(predicate) or not is_of_program(predicate):
        return frozenset()
    if any(u.opcode != "select" or u.operands[0] is not predicate for u in predicate.users):
        return frozenset()
    derived = [u for u in predicate.users if is_of_derivative(u)]
    selects = [u for u in predicate.users if u not in derived]
    # A function of the framework is in one place; in others a predicate that has a name is one.
    if len(selects) != 2 or not all(is_of_program(u) and _is_beside(u, predicate) for u in selects):
        return frozenset()
    if all(operation(u) == operation(predicate) for u in selects):
        return frozenset()  # of one operation of the framework, such as `digamma`, which compares once
    inner = {u for u in selects if any(_is_computed_of(v, u) for v in selects)}
    return frozenset(inner | {u for u in derived if inner and any(_is_computed_of(u, v) for v in derived)})


def _is_beside(x: Instruction, y: Instruction) -> bool:
    return (stack_frame(x), outermost_call(x)) == (stack_frame(y), outermost_call(y))


def _is_computed_of(x: Instruction, of: Instruction) -> bool:
    """Does `x` depend on another of the same call?"""
    found, pending, function = {x}, [x], outermost_call(x)
    while pending:
        for o in pending.pop().operands:
            if o is of:
                return True
            if o not in found and (outermost_call(o) == function or is_inserted_convert(o)):
                found.add(o)
                pending.append(o)
    return False
