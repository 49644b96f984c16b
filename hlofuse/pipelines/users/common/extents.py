"""From where to where in the source an operation is written, and in which call."""

from __future__ import annotations

from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.names import stack_frame


class Extent(NamedTuple):
    """From where to where an expression goes, in which file and call."""

    context: tuple[int, int]
    function: tuple[int, int]
    start: tuple[int, int]
    end: tuple[int, int]

    def encloses(self, other: Extent) -> bool:
        return self.context == other.context and self.start <= other.start and self.end >= other.end

    def is_cut_short_before(self, operand: Extent) -> bool:
        """Does what reads this `operand` begin ahead of it, on its line, but seem to end there?

        Of places that begin alike the tables have the end of the first one, such as that of `a[0]` for all of
        `a[0] - a[1]`.
        """
        is_ahead = self.start[0] == operand.start[0] and self.end <= operand.start
        return self.context == operand.context and is_ahead

    def goes_around(self, other: Extent) -> bool:
        """Is the other within this one, in whichever calls of the function?"""
        return self.function == other.function and self.start <= other.start and self.end >= other.end


def extent_of(x: Instruction) -> Extent | None:
    number = stack_frame(x)
    if not number or x.computation is None or x.computation.module is None:
        return None
    return extent_of_frame(x.computation.module, number)


def callers_of(x: Instruction) -> list[int]:
    """The frames of the calls out of which `x` came, outwards."""
    if x.computation is None or x.computation.module is None:
        return []
    return [*x.computation.module.stack_frames.with_callers(stack_frame(x))][1:]


def places_of_callers(x: Instruction) -> list[Extent]:
    """The places of those calls, as far as they are known."""
    if x.computation is None or x.computation.module is None:
        return []
    module = x.computation.module
    places = (extent_of_frame(module, frame) for frame in callers_of(x))
    return [place for place in places if place is not None]


def is_in_lambda(x: Instruction) -> bool:
    extent = extent_of(x)
    if extent is None or x.computation is None or x.computation.module is None:
        return False
    return x.computation.module.stack_frames.functions.get(extent.function[1], "").endswith("<lambda>")


def extents_apart(module: Module, frame: int, other: int) -> tuple[Extent, Extent] | None:
    """Where the calls part that led to two frames: from there on either is of functions of its own."""
    callers = module.stack_frames.with_callers
    there = {e.context: e for k in callers(other) if (e := extent_of_frame(module, k)) is not None}
    for number in callers(frame):
        here = extent_of_frame(module, number)
        if here is not None and here.context in there:
            return here, there[here.context]
    return None


def extent_of_frame(module: Module, number: int) -> Extent | None:
    tables = module.stack_frames
    frame = tables.frames.get(number, {})
    place = tables.locations.get(frame.get("file_location_id", 0), {})
    if not place.get("end_line") or not place.get("end_column"):
        return None
    parent = frame.get("parent_frame_id", 0)
    return Extent(
        (place.get("file_name_id", 0), parent),
        (place.get("file_name_id", 0), place.get("function_name_id", 0)),
        (place.get("line", 0), place.get("column", 0)),
        (place["end_line"], place["end_column"]),
    )
