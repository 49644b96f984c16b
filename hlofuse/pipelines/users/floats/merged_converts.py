"""Converts of the program that CSE made one with converts that float normalization put in.

`convert(x)` of the program and what was put between `x` and an operation that cannot compute in its precision
are equal. HloCSE (`xla/service/hlo_cse.cc`) keeps the one that it meets first.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.floats.inserted_converts import is_widening


def with_last_in_place_of_convert(
    users: list[Instruction], wide: frozenset[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a narrow value, one of which is such a convert: the last took the place of the program's.

    What is in single precision and not in `wide` read that one. `order` is the post-order.
    """
    convert = next((u for u in users if is_widening(u)), None)
    if convert is None:
        return users
    of_program = [order[u] for u in convert.users if u not in wide]
    widened = [order[u] for u in convert.users if u in wide]
    if not of_program or not widened:
        return users
    listed: list[Instruction | None] = list(users)
    place = {u: order[u] for u in users} | {convert: min(widened)}
    listed.insert(sum(place[u] < min(of_program) for u in users), None)
    return [u for u in without(listed, [None]) if u is not None]
