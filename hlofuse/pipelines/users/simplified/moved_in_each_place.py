"""Slices taken, and reshaped, in several places of the source, whose readers ReshapeMover made anew."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.holes import behind_last, last_in_front
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.simplified.reshaped_once import is_element


def with_each_place_moved(
    x: Instruction, users: list[Instruction], moved: list[Instruction], uses: Uses, passes: int
) -> list[Instruction] | None:
    """The users of a slice that was taken, and reshaped, in several places, until CSE made one of all.

    Each had those that were `moved` in its place, the last in front. They come in turn, those of `x` first,
    and then what passes made since, `passes` being the first id that one gave. None if it is no such slice.
    """
    here = extent_of(x)
    if x.opcode != "slice" or here is None or any(u.id < moved[0].id for u in users):
        return None
    if all(_is_moved_behind_another(u, x, passes) for u in moved):
        return None
    extents = {u: extent_of(u) for u in moved}
    # Who reads a value with a name is written around it nowhere.
    is_named = not any(
        e is not None and (e.encloses(here) or e.is_cut_short_before(here)) for e in extents.values()
    )
    places: dict[Hashable, list[Instruction]] = {}
    for u in sorted(moved, key=lambda u: uses[x, u]):
        extent = extents[u]
        is_own = stack_frame(u) == stack_frame(x) or (extent is not None and extent.is_cut_short_before(here))
        if is_named and extent is not None:
            is_own = extent.context == here.context
        places.setdefault(here if is_own else (stack_frame(u), outermost_call(u)), []).append(u)
    for of_place in places.values():
        of_place.sort(key=lambda u: u.id)
    if len(places) == 1:
        return None
    first = places.get(here, [])
    if all(len(of_place) == 1 for of_place in places.values()):
        met = iter(sorted(moved, key=lambda u: (u not in first, uses[x, u])))
        return [next(met) if u in moved else u for u in users] if first else None
    places.pop(here, None)
    listed = [u for of_place in (first, *places.values()) for u in last_in_front(of_place)]
    return [*listed, *(u for u in users if u not in moved)]


def _is_moved_behind_another(u: Instruction, x: Instruction, passes: int) -> bool:
    """Could it not be moved before what it reads as well was? CSE has been in between."""
    others = (o for o in u.operands if o is not x)
    return any(o.opcode in ELEMENTWISE_OPCODES and o.op_name and o.id >= passes for o in others)


def with_moved_in_turn(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of an element, with who computes with what another made of it behind that other.

    ReshapeMover makes all that read a reshape anew together, and not before each of their operands is one:
    those two had read reshapes of their own, and the first was moved in an earlier round, into the place of
    its reshape. What is unstacked is reshaped at once, and told of apart.
    """
    if x.opcode != "slice" or 1 not in x.shape.dimensions or is_element(x):
        return users
    of_shape = [u for u in users if _is_computed_alike(u, x)]
    computed = {u: _computed_with(u, x) for u in of_shape} if len(of_shape) > 1 else {}
    for u in sorted(computed, key=lambda u: u.id):
        at = users.index(u)
        if (earlier := next((v for v in users[at:] if v in computed[u]), None)) is not None:
            users = behind_last(users, u, computed[u].__contains__)
            users.remove(earlier)
            users.insert(at, earlier)
    return users


def _computed_with(u: Instruction, x: Instruction) -> set[Instruction]:
    """All of the dimensions of `x` that `u` is computed with, operand by operand."""
    found, pending = set[Instruction](), [u]
    while pending:
        near = {o for o in pending.pop().operands if o not in found and _is_computed_alike(o, x)}
        found |= near
        pending += near
    return found


def _is_computed_alike(u: Instruction, x: Instruction) -> bool:
    return u.opcode in ELEMENTWISE_OPCODES and u.shape.dimensions == x.shape.dimensions
