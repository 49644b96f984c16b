"""The order of the numbers that a program spreads, where CSE has made one constant of several.

The front end puts each number in front of all others when it is first used, a constant and what spreads it.
Of equal constants CSE keeps the oldest (`CombineConstants` of `xla/service/hlo_cse.cc`), which is the one
that was used last: what the others were spread to reads that one since. Their own numbers are missing among
the names.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def in_order_of_first_use(order: list[Instruction], chains: Iterable[list[Instruction]]) -> list[Instruction]:
    """The program in its likely `order`, numbers in front, with those that read a constant of another's.

    `chains` are those of one root each, the last one first.
    """
    spread = {x for x in order if x.operands and is_constant(x)}
    first: dict[Instruction, int] = {}
    """When a number is used first."""
    for k, x in enumerate(order):
        for source in spread.intersection(x.operands):
            first.setdefault(source, k)
    readers: dict[Instruction, list[Instruction]] = {}
    for x in first:
        readers.setdefault(x.operands[0], []).append(x)
    own = {max(of_one, key=first.__getitem__) for of_one in readers.values()}
    others = sorted(first.keys() - own, key=lambda x: -first[x])
    if not others:
        return order
    numbers = [x for x in order if is_constant(x)]
    place = {x: (_number(x), bool(x.operands)) for x in numbers if x not in others}
    taken = {number for number, _ in place.values()}
    end = max(taken) + len(others) + 1
    beside = {x: (chain[k + 1 :], chain[:k]) for chain in chains for k, x in enumerate(chain) if x in others}
    for x in others:
        before, behind = beside[x]
        lowest = max((place[y][0] for y in before if y in place), default=-1)
        highest = min((place[y][0] for y in behind if y in place), default=end)
        later = [place[y][0] for y in first if y in place and first[y] > first[x]]
        sooner = [place[y][0] for y in first if y in place and first[y] < first[x]]
        lowest = max((n for n in later if lowest < n < highest), default=lowest)
        highest = min((n for n in sooner if lowest < n < highest), default=highest)
        number = next((n for n in range(lowest + 1, highest) if n not in taken), None)
        place[x] = (lowest, True) if number is None else (number, False)
        taken.add(place[x][0])
    numbers.sort(key=place.__getitem__)
    return [*numbers, *(x for x in order if not is_constant(x))]


def _number(x: Instruction) -> int:
    return name_before_renaming(x.operands[0] if x.operands else x).number
