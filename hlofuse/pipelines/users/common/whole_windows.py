"""Indices in dimensions of which a window is all.

AlgebraicSimplifier has such a window start at zero (`HandleDynamicSlice` and `HandleDynamicUpdateSlice`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from itertools import pairwise

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, stack_frame
from hlofuse.pipelines.users.common.numbers import Numbers

_WINDOWS = {"dynamic-slice": 1, "dynamic-update-slice": 2}
"""The first of the operands that say where it starts."""


def dropped_in_front(
    selects: list[Instruction], reader: Instruction, numbers: Numbers
) -> dict[Instruction, int]:
    """For each of the `selects` that a window, `reader`, starts at how many it had read for the dimensions in
    front of that one, which are gone.

    Each chooses between an index and that index from the end. The framework numbers them, and the sums, as
    the dimensions are.
    """
    first = _WINDOWS.get(reader.opcode)
    if (
        first is None
        or not is_of_program(reader)
        or not all(s.users == [reader] and stack_frame(s) for s in selects)
    ):
        return {}  # CSE made one of several, or numbers or dimensions are not the framework's
    starts = reader.operands[first:]
    window = reader.shape if first == 1 else reader.operands[1].shape
    sizes = zip(starts, window.dimensions, reader.operands[0].shape.dimensions, strict=True)
    is_whole = [is_constant(start) and size == whole for start, size, whole in sizes]
    kept = sorted((s for s in selects if s in starts), key=_number)
    dropped: dict[Instruction, int] = {}
    places = [starts.index(s) for s in kept]
    if places and places == sorted(places) and all(is_whole[: places[0]]):  # no layout has another order
        dropped[kept[0]] = places[0]
    for before, select in pairwise(kept):
        dropped[select] = min(_number(select) - _number(before) - 1, sum(is_whole))
    return {s: count for s, count in dropped.items() if count > 0 and _are_missing(s, count, numbers)}


def _number(x: Instruction) -> int:
    return name_before_renaming(x).number


def _are_missing(select: Instruction, count: int, numbers: Numbers) -> bool:
    """Are the numbers in front of the select and of what it reads of nothing that is there?"""
    for x in (select, *select.operands[:2]):
        root, number = name_before_renaming(x)
        if x is select.operands[0] and len(x.users) > 1:
            continue  # CSE made it one with that of another dimension
        if number <= count or any(number - k in numbers[root] for k in range(1, count + 1)):
            return False
    return True
