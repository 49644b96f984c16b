"""Results that were made narrow and wide again before they were used."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_derivative, operation
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.duplicates.source_expressions import extent_of
from hlofuse.pipelines.users.floats.inserted_converts import is_narrowing

_NARROW = frozenset({"bf16", "f16"})


def narrowed_places(computation: Computation) -> frozenset[Hashable]:
    """The places in the source of which a result is made narrow at once, in the same function, each with
    whether it is in a derivative.

    A derivative has the place of what it is the derivative of. It was made wide again if others are, outside
    of it: an optimizer converts every one.
    """
    found: set[Hashable] = set()
    is_any_wide = any(map(_is_made_wide_outside, computation))
    for convert in computation:
        if convert.opcode != "convert" or convert.shape.element_type not in _NARROW or is_narrowing(convert):
            continue
        (x,) = convert.operands
        place, there = extent_of(x), extent_of(convert)
        if place and there and place.function == there.function and x.users == [convert]:
            found.update(
                (place.function, place.start, place.end, y)
                for y in (False, is_any_wide or is_of_derivative(x))
            )
    return frozenset(found)


def with_last_in_place_of_cast(
    producer: Instruction, users: list[Instruction], places: frozenset[Hashable]
) -> list[Instruction]:
    """The users of `producer`, given that it comes of one of `places` and yet nothing makes it narrow here.

    The users had been those of a convert back. SimplifyFPConversions (`xla/hlo/transforms/simplifiers/
    simplify_fp_conversions.cc`) appended them and took both converts away, so that the last stands in front.
    """
    if not places or producer.shape.is_tuple or producer.shape.element_type != "f32":
        return users
    place = extent_of(producer)
    if place is None or (place.function, place.start, place.end, is_of_derivative(producer)) not in places:
        return users
    if any(u.opcode == "convert" and u.shape.element_type in _NARROW for u in users):
        return users
    if any(other is not None and other.function == place.function for other in map(extent_of, users)):
        return users
    return last_in_front(users)


def _is_made_wide_outside(x: Instruction) -> bool:
    """Is it a convert of the program from a narrow type, outside of derivatives?"""
    if x.opcode != "convert" or x.shape.element_type != "f32" or operation(x) != "convert_element_type":
        return False
    return x.operands[0].shape.element_type in _NARROW and "jvp(" not in (x.op_name or "")
