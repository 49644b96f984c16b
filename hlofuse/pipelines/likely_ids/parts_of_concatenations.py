"""Concatenations of some of the operands of another one, which simplification made for a slice of it.

Mirrors `HandleSlice` of `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`: a slice that ends within a
few operands of a concatenation becomes one of these alone. Where the whole is gone, its parts overlap. What
is a part of a part is made the next time around, and numbers do not follow the text there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import name_before_renaming


def made_for_slices(
    makers: Mapping[Instruction, Maker], named: frozenset[Instruction]
) -> dict[Instruction, Maker]:
    """The makers of such concatenations and of their slices, of all instructions in the order of the text."""
    place = {x: k for k, x in enumerate(makers) if x not in named and _is_part(x)}
    found: dict[Instruction, Maker] = {}
    last, turn = -1, Maker.SIMPLIFIER
    for x in sorted(place, key=lambda x: name_before_renaming(x).number):
        turn = Maker.SIMPLIFIER_AGAIN if place[x] < last else turn
        last = place[x]
        found[x] = found[x.users[0]] = turn
    return found


def with_slices_behind_parts(order: list[Instruction], named: frozenset[Instruction]) -> list[Instruction]:
    """What one pass made, given in its likely `order`, with each such slice right behind what it reads."""
    part_of: dict[Instruction, Instruction] = {x.users[0]: x for x in order if x not in named and _is_part(x)}
    if not part_of:
        return order
    place = {x: k for k, x in enumerate(order)}
    return sorted(order, key=lambda x: (place[part_of[x]], 1) if x in part_of else (place[x], 0))


def with_wholes_in_front(order: list[Instruction], named: frozenset[Instruction]) -> list[Instruction]:
    """What is older, given in its likely `order`, with what wholes read in front of readers of slices."""
    parts = {u for x in order for u in x.users if u not in named and _is_part(u)}
    if not parts:
        return order
    place = {x: k for k, x in enumerate(order)}
    readers = {u for part in parts for u in part.users[0].users}
    start = min((place[x] for x in readers if x in place), default=0)
    pending = [o for part in parts for o in part.operands]
    late: set[Instruction] = set()
    for x in pending:
        if place.get(x, -1) > start and x not in late:
            late.add(x)
            pending += x.operands
    return sorted(order, key=lambda x: (min(place[x], start), x not in late, place[x]))


def _is_part(x: Instruction) -> bool:
    return _is_sliced_once(x) and any(
        _is_within(x.operands, whole.operands) or (_is_sliced_once(whole) and _overlap(x, whole))
        for operand in (x.operands[0], x.operands[-1])
        for whole in operand.users
        if whole is not x and whole.opcode == "concatenate"
        if whole.attributes["dimensions"] == x.attributes["dimensions"]
    )


def _is_sliced_once(x: Instruction) -> bool:
    return x.opcode == "concatenate" and len(x.users) == 1 and x.users[0].opcode == "slice"


def _is_within(part: Sequence[Instruction], whole: Sequence[Instruction]) -> bool:
    spare = len(whole) - len(part)
    return spare > 0 and any(whole[k : k + len(part)] == part for k in range(spare + 1))


def _overlap(x: Instruction, y: Instruction) -> bool:
    """Does one end as the other one begins?"""
    return any(
        first[k:] == second[: len(first) - k]
        for first, second in ((x.operands, y.operands), (y.operands, x.operands))
        for k in range(1, len(first))
    )
