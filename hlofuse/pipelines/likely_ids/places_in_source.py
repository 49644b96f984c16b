"""The order in which the front end met places in the source.

StackFrameIndexBuilder (`xla/hlo/translate/mhlo_to_hlo/stack_frame_index_builder.cc`) numbers a place when the
first operation of it is written: whatever bears a higher number was written behind that. Of the operations
of a place the first one may be gone, then another one seems too late: it is the few that are moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import stack_frame


def as_met(order: list[Instruction], reads: Mapping[Instruction, Iterable[Instruction]]) -> list[Instruction]:
    """Operations in a likely `order` of the program, such that places are met as they are numbered.

    An operation never comes before what it `reads`.
    """
    places = {x: stack_frame(x) for x in order}
    read_by: dict[Instruction, list[Instruction]] = {x: [] for x in order}
    for x, needed in reads.items():
        for source in needed:
            read_by[source].append(x)
    first, highest = _met(order, places)
    for place in sorted(_told(order)):
        at = first[place]
        if highest[at] > place:
            early = [x for x in order[:at] if places[x] > place and not is_constant(x)]
            start = order.index(early[0])
            window = order[start : at + 1]
            order = [*order[:start], *_in_turn(window, early, reads, read_by), *order[at + 1 :]]
            first, highest = _met(order, places)
    return order


def _met(order: list[Instruction], places: Mapping[Instruction, int]) -> tuple[dict[int, int], list[int]]:
    """Where each place is met first, and the highest number up to each operation."""
    first: dict[int, int] = {}
    for k, x in enumerate(order):
        first.setdefault(places[x], k)
    return first, [*accumulate((0 if is_constant(x) else places[x] for x in order), max)]


def _in_turn(
    window: list[Instruction],
    early: list[Instruction],
    reads: Mapping[Instruction, Iterable[Instruction]],
    read_by: Mapping[Instruction, Iterable[Instruction]],
) -> list[Instruction]:
    """The last one in front of those that came too early, unless the data is against it."""
    members = set(window)
    behind = _reached(early, read_by, members)
    ahead = _reached(window[-1:], reads, members)
    if not ahead.isdisjoint(early):
        return window
    if len(behind) <= len(ahead):
        return sorted(window, key=behind.__contains__)
    return sorted(window, key=lambda x: x not in ahead)


def _reached(
    start: list[Instruction],
    edges: Mapping[Instruction, Iterable[Instruction]],
    members: set[Instruction],
) -> set[Instruction]:
    """All that is connected with these, they included."""
    found = set(start)
    pending = [*start]
    while pending:
        for x in edges[pending.pop()]:
            if x in members and x not in found:
                found.add(x)
                pending.append(x)
    return found


def _told(operations: list[Instruction]) -> set[int]:
    """Places of which the first operation may still be there.

    Constants are written before everything else, what an operation calls before it; where a pass made
    something of a place, that may have been the first.
    """
    computation = operations[0].computation if operations else None
    if computation is None:
        return set()
    members = {x for x in operations if not is_constant(x) and not x.called_computations}
    others = {stack_frame(x) for x in computation if x not in members and x.opcode != "bitcast"}
    return {stack_frame(x) for x in members} - others - {0}
