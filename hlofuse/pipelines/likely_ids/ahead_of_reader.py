"""Numbers that are spread for one operation, which was made right behind them.

Whoever makes an operation makes what it reads first. AlgebraicSimplifier makes a number of its own, with a
broadcast, for the very operation (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). What the
broadcast is called tells less, as it may be in the place of another one.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction


def with_numbers_ahead(order: list[Instruction]) -> list[Instruction]:
    """The `order` in which something was made, with no such number behind what reads it."""
    place = {x: k for k, x in enumerate(order)}
    late = {x for x in order if _has_one_reader(x) and place.get(x.users[0], place[x]) < place[x]}
    return _moved(order, late)


def with_numbers_right_ahead(order: list[Instruction]) -> list[Instruction]:
    """The same with those that bear the name of what reads them right ahead of that."""
    members = {*order}
    own = {
        x
        for x in order
        if _has_one_reader(x) and x.users[0] in members and x.op_name and x.op_name == x.users[0].op_name
    }
    return _moved(order, own)


def _has_one_reader(x: Instruction) -> bool:
    return is_broadcast_of_constant(x) and len(x.users) == 1


def _moved(order: list[Instruction], numbers: Iterable[Instruction]) -> list[Instruction]:
    of_reader: dict[Instruction, list[Instruction]] = {}
    moved = {*numbers}
    for x in order:
        if x in moved:
            of_reader.setdefault(x.users[0], []).append(x)
    return [y for x in order if x not in moved for y in (*of_reader.get(x, ()), x)]
