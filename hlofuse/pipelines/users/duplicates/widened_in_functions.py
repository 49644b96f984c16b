"""Converts to single precision that functions made of the same narrow value, each its own.

HloCSE (`xla/service/hlo_cse.cc`) keeps the one that it meets first and appends the users of the others to its
own. Where the value was widened the convert is gone since, and its users are all that is left of it.
"""

from __future__ import annotations

from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_on_way_back
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.visits import Uses

Context: TypeAlias = "tuple[int, int] | None"


def with_functions_as_met(
    producer: Instruction, users: list[Instruction], uses: Uses, wide: frozenset[Instruction]
) -> list[Instruction]:
    """The users of what was narrow, those that read it converted as CSE met the converts.

    What is in `wide` read the value itself, and keeps its place. A derivative is converted once, where what
    it is one of was converted.
    """
    readers = [u for u in users if u not in wide and u.opcode != "convert"]
    if len(readers) < 2 or is_on_way_back(producer):
        return users
    if any(u.opcode == "complex" for u in readers):
        return users  # who asked for a part of the number reads the value itself, wherever that is
    met: dict[Context, int] = {}
    for user in readers:
        if not is_on_way_back(user) and is_of_program(user):
            where = _context(user)
            met[where] = min(uses[producer, user], met.get(where, uses[producer, user]))
    if len(met) < 2 or None in met:
        return users
    ranked = iter(sorted(readers, key=lambda u: met.get(_context(u), len(uses))))
    return [u if u in wide or u.opcode == "convert" else next(ranked) for u in users]


def _context(user: Instruction) -> Context:
    """The call that it stands in."""
    place = extent_of(user)
    return place and place.context
