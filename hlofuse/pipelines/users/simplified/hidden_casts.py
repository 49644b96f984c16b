"""Results that were made narrow and wide again before they were used."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_of_derivative, is_on_way_back, scope
from hlofuse.pipelines.names import name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.extents import extent_of, extent_of_frame
from hlofuse.pipelines.users.common.holes import last_at, last_in_front
from hlofuse.pipelines.users.common.numbers import Numbers
from hlofuse.pipelines.users.duplicates.merged_reshapes import GonePlaces
from hlofuse.pipelines.users.floats.inserted_converts import is_narrowing
from hlofuse.pipelines.users.simplified.split_reductions import is_split_reduction

_NARROW = frozenset({"bf16", "f16"})
_ANY = "any operation"


def narrowed_places(computation: Computation) -> frozenset[Hashable]:
    """The places in the source of which a result is made narrow at once, in the same function, each with
    whether it is in a derivative and which operation it is.

    A place may be that of many operations: all that `lax.associative_scan` slices and joins has that of its
    call, of which the last alone is cast. A derivative, other than what is computed again, has the place of
    what it is the derivative of, whatever operation that is. It was made wide again if others are, outside of
    it: an optimizer converts every one.
    """
    found: set[Hashable] = set()
    is_any_wide = any(map(_is_made_wide_outside, computation))
    for convert in computation:
        if convert.opcode != "convert" or convert.shape.element_type not in _NARROW or is_narrowing(convert):
            continue
        (x,) = convert.operands
        place, there = extent_of(x), extent_of(convert)
        if place and there and place.function == there.function and x.users == [convert]:
            is_derived = is_on_way_back(x)
            found.add((place.function, place.start, place.end, is_derived, operation(x)))
            if is_derived or is_any_wide:
                found.add((place.function, place.start, place.end, not is_derived, _ANY))
    return frozenset(found)


def with_last_in_place_of_cast(
    producer: Instruction, users: list[Instruction], places: frozenset[Hashable]
) -> list[Instruction]:
    """The users of `producer`, given that it was cast in one of `places`.

    The users had been those of a convert back. SimplifyFPConversions (`xla/hlo/transforms/simplifiers/
    simplify_fp_conversions.cc`) appended them and took both converts away, so that the last stands in front.
    """
    return last_in_front(users) if was_cast(producer, places) else users


def was_cast(x: Instruction, places: frozenset[Hashable]) -> bool:
    """Does it come of one of `places`, and yet nothing makes it narrow here?"""
    if not places or x.shape.is_tuple or x.shape.element_type != "f32" or _is_made_wide(x):
        return False
    place = extent_of(x)
    if place is None:
        return False
    there = place.function, place.start, place.end, is_on_way_back(x)
    if (*there, operation(x)) not in places and (*there, _ANY) not in places:
        return False
    if any(u.opcode == "convert" and u.shape.element_type in _NARROW for u in x.users):
        return False
    return all(other is None or other.function != place.function for other in map(extent_of, x.users))


def _is_made_wide(x: Instruction) -> bool:
    """Was it narrow to begin with, or is a part of what was? Nothing would make that narrow and wide again.

    SliceSinker (`xla/hlo/transforms/simplifiers/slice_sinker.cc`) makes the parts wide together, and gives
    each of them a name again.
    """
    while x.opcode == "slice":
        x = x.operands[0]
    return x.opcode == "convert" and x.operands[0].shape.element_type in _NARROW


def with_last_in_place_of_cast_back(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of what was made narrow, where something had it wide again and reads the wide value since.

    SimplifyFPConversions took that second convert away, and the last user took its place. What a pass had
    put behind the second convert still has its op_name.
    """
    if producer.opcode != "convert" or producer.shape.element_type not in _NARROW or is_narrowing(producer):
        return users
    (wide,) = producer.operands
    backs = [u for u in wide.users if _stood_behind_cast_back(u, producer)]
    if len(backs) != 1:
        return users
    place = sum(order[u] < order[backs[0]] for u in users)
    return last_at(users, place)


def _stood_behind_cast_back(u: Instruction, narrow: Instruction) -> bool:
    is_reshape = u.opcode == "bitcast" and operation(u) == "convert_element_type"
    return is_reshape and u.op_name != narrow.op_name and u.shape.element_type == "f32"


def with_last_in_place_of_pair(
    producer: Instruction, users: list[Instruction], gone: GonePlaces, numbers: Numbers
) -> list[Instruction]:
    """The users of `producer` where nothing else tells of such a convert back, which all of them read.

    SimplifyFPConversions took both converts away as above. A gap is left, in the numbers of converts or in
    the places of the source.
    """
    if _is_numbered_ahead_of_pair(producer, numbers) or _is_ahead_of_gone_place(producer, users, gone):
        return last_in_front(users)
    return users


def _is_numbered_ahead_of_pair(x: Instruction, numbers: Numbers) -> bool:
    """Was a complex number made less than a real one? The framework makes it real first, then that narrow."""
    if x.opcode != "real" or operation(x) != "convert_element_type" or is_of_derivative(x):
        return False
    root, number = name_before_renaming(x)
    known = numbers[root]
    return number + 3 in known and not {number + 1, number + 2} & known


def _is_ahead_of_gone_place(x: Instruction, users: list[Instruction], gone: GonePlaces) -> bool:
    """Is there one place between that of `x` and the next, of all that reads it, and nothing left of it?

    Places are numbered as the program comes to them. What comes first in the program are constants: of an
    operation that needs one the place may be in front of all.
    """
    here = stack_frame(x)
    is_number = not x.shape.is_tuple and x.shape.element_type in FLOATING_TYPES
    if not here or not is_number or x.opcode == "broadcast" or not _is_of_main(x):
        return False
    if x.computation is None or x.computation.module is None:
        return False
    place = extent_of_frame(x.computation.module, here + 1)
    if place is None or place not in gone.get(place.context, ()):
        return False
    if any(map(is_split_reduction, users)):
        return False  # the place is that of the concatenate
    readers = [_reader(u) for u in users]
    if not all(_is_of_main(u) for u in readers if u.opcode != "reduce"):
        return False
    if any("jvp(" in (u.op_name or "") and stack_frame(u) < here for u in readers):
        return False  # what is derived read it as it was
    behind = {stack_frame(u) for u in readers if stack_frame(u) >= here}
    return behind == {here + 2} and _is_room_for_pair(x)


def _is_of_main(x: Instruction) -> bool:
    """Is it as the framework made it, outside of functions and derivatives?"""
    if is_made_by_pass(x) or is_of_derivative(x):
        return False
    return stack_frame(x) != 0 and scope(x) == ""


def _is_room_for_pair(x: Instruction) -> bool:
    """Are two numbers of converts free between what was made ahead of `x` and behind it?"""
    converts = [u for u in x.computation or () if name_before_renaming(u).root == "convert_element_type"]
    ahead, behind = (
        [name_before_renaming(u).number for u in converts if (u.id > x.id) == is_behind]
        for is_behind in (False, True)
    )
    return not behind or min(behind) - max(ahead, default=0) > 2


def _reader(user: Instruction) -> Instruction:
    """What reads through a reshape that a pass put in front of a reduction."""
    if user.opcode == "bitcast" and not user.op_name and len(user.users) == 1:
        return user.users[0] if user.users[0].opcode == "reduce" else user
    return user


def _is_made_wide_outside(x: Instruction) -> bool:
    """Is it a convert of the program from a narrow type, outside of derivatives?"""
    if x.opcode != "convert" or x.shape.element_type != "f32" or operation(x) != "convert_element_type":
        return False
    return x.operands[0].shape.element_type in _NARROW and "jvp(" not in (x.op_name or "")
