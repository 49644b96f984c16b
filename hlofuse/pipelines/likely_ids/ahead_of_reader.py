"""Numbers that are spread for one operation, which was made right behind them.

Whoever makes an operation makes what it reads first. AlgebraicSimplifier makes a number of its own, with a
broadcast, for the very operation (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). What the
broadcast is called tells less, as it may be in the place of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.names import name_before_renaming


def with_numbers_ahead(order: list[Instruction]) -> list[Instruction]:
    """The `order` in which something was made, with no such number behind what reads it."""
    place = {x: k for k, x in enumerate(order)}
    readers = {x: x.users[0] for x in order if is_broadcast_of_constant(x) and len(x.users) == 1}
    late = {x: reader for x, reader in readers.items() if place.get(reader, place[x]) < place[x]}
    return _moved(order, late)


def with_spread_right_ahead(order: list[Instruction], *, cloned: bool = False) -> list[Instruction]:
    """The same with what was spread for its reader right ahead of that, or of the first one.

    If all of it is of a computation that was `cloned`, none is ahead of what has a lower number: it was made
    again behind that.
    """
    place = {x: k for k, x in enumerate(order)}
    spread = {x: [u for u in x.users if u in place] for x in order if is_spread_for_reader(x)}
    own = {x: min(readers, key=place.__getitem__) for x, readers in spread.items() if readers}
    ahead = _moved(order, own)
    return _in_order_of_numbers(ahead, own) if cloned else ahead


def _in_order_of_numbers(order: list[Instruction], members: Iterable[Instruction]) -> list[Instruction]:
    """The `order` with those `members` behind what has a lower number, as in a clone numbers tell of age.

    What spreads a number may be in the place of another one.
    """
    chains = chains_of(x for x in members if not is_broadcast_of_constant(x))
    key = {x: (k, 0) for k, x in enumerate(order)}
    for chain in chains.values():
        place, turn = -1, 0
        for x in sorted(chain, key=lambda x: name_before_renaming(x).number):
            place, turn = key[x] = max(key[x], (place, turn + 1))
    return sorted(order, key=key.__getitem__)


def is_spread_for_reader(x: Instruction) -> bool:
    """Was it made for the very operation that reads it, and not in the place of another broadcast?"""
    if x.opcode != "broadcast" or not x.op_name or {u.op_name for u in x.users} != {x.op_name}:
        return False
    if is_broadcast_of_constant(x):
        return len(x.users) == 1
    return name_before_renaming(x).root == x.opcode


def _moved(order: list[Instruction], readers: Mapping[Instruction, Instruction]) -> list[Instruction]:
    of_reader: dict[Instruction, list[Instruction]] = {}
    for x in order:
        if x in readers:
            of_reader.setdefault(readers[x], []).append(x)
    return [y for x in order if x not in readers for y in (*of_reader.get(x, ()), x)]
