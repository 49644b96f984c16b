"""The derivative of a maximum or a minimum in a function, which asks four times where it was one of both.

Either operand is given its share, half of it where both are the same (`_balanced_eq` of JAX): it is compared
with the result, then the other one is. So each comparison is there twice, the second two the other way round,
and HloCSE (`xla/service/hlo_cse.cc`) keeps the ones that it meets first.
"""

from __future__ import annotations

from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import name_before_renaming, operation
from hlofuse.pipelines.users.common.holes import without

_EXTREMES = frozenset({"maximum", "minimum"})


class _Twin(NamedTuple):
    """The comparison that went, which was another one's like, where it was and what read it."""

    age: tuple[int, int]
    reader: Instruction


def with_ties_merged(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a value of a function after the twins of the comparisons among them went.

    Clones of what the function has come first, by age; the last user fills each hole.
    """
    function = outermost_call(producer)
    if not function:
        return users
    inner = [u for u in users if outermost_call(u) == function]
    ages = [u.id for u in inner]
    if inner != users[: len(inner)] or ages != sorted(ages):
        return users
    twins = [twin for u in inner for twin in _twins_of(u)]
    if not twins:
        return users
    aged: list[tuple[tuple[int, int], Instruction | _Twin]] = [((u.id, 0), u) for u in inner]
    aged += [(twin.age, twin) for twin in twins]
    listed = [x for _, x in sorted(aged, key=lambda pair: pair[0])] + users[len(inner) :]
    gone = sorted(twins, key=lambda twin: order[twin.reader])
    return [u for u in without(listed, gone) if isinstance(u, Instruction)]


def _twins_of(comparison: Instruction) -> list[_Twin]:
    """The other one like it, if both were of a derivative with four."""
    if operation(comparison) != "eq" or comparison.opcode != "compare":
        return []
    for extreme in comparison.operands:
        pair = _comparisons(extreme) if extreme.opcode in _EXTREMES else []
        if comparison in pair and len(pair) == 2:
            return _twins_in(pair, comparison)
    return []


def _comparisons(extreme: Instruction) -> list[Instruction]:
    """What compares it with its operands, each read by two choices."""
    found = [
        u
        for u in extreme.users
        if u.opcode == "compare" and set(u.operands) - {extreme} <= set(extreme.operands)
    ]
    if any(len(_choices(u)) != 2 or u.op_name != found[0].op_name for u in found):
        return []
    return sorted(found, key=lambda u: u.id)


def _choices(comparison: Instruction) -> list[Instruction]:
    found = [u for u in comparison.users if u.opcode == "select"]
    return sorted(found, key=lambda u: name_before_renaming(u).number)


def _twins_in(pair: list[Instruction], comparison: Instruction) -> list[_Twin]:
    """The first choice of all reads the first comparison: the younger of those that are left is its like."""
    older, younger = pair
    first = min((*_choices(older), *_choices(younger)), key=lambda u: name_before_renaming(u).number)
    were_first_kept = first in older.users
    reader = _choices(comparison)[were_first_kept]
    is_older = comparison is older
    age = (younger.id, 1 + is_older) if were_first_kept else (older.id, -1 - (not is_older))
    return [_Twin(age, reader)]
