"""The order of the numbers that a program spreads, where CSE has made one constant of several.

The front end puts each number in front of all others when it is first used, a constant and what spreads it.
Of equal constants CSE keeps the oldest (`CombineConstants` of `xla/service/hlo_cse.cc`), which is the one
that was used last: what the others were spread to reads that one since. Their own numbers are missing among
the names.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def in_order_of_first_use(
    order: list[Instruction],
    chains: Iterable[list[Instruction]],
    sources: Mapping[Instruction, Iterable[Instruction]],
) -> list[Instruction]:
    """The program in its likely `order`, numbers in front, with those that read a constant of another's.

    `chains` are those of one root each, the last one first. A number may be used by way of what passes made:
    `sources` are what each of the program's needs.
    """
    spread = {x for x in order if x.operands and is_constant(x)}
    first: dict[Instruction, int] = {}
    """When a number is used first."""
    for k, x in enumerate(order):
        for source in sources[x]:
            if source in spread:
                first.setdefault(source, k)
    readers: dict[Instruction, list[Instruction]] = {}
    for x in first:
        readers.setdefault(x.operands[0], []).append(x)
    likely = {max(of_one, key=first.__getitem__) for of_one in readers.values()}
    chains = [*chains]
    own = likely - _of_gone(likely, chains)
    others = {x: k for x, k in first.items() if x not in own}
    if not others:
        return order
    place = {x: (_number(x), bool(x.operands)) for x in order if is_constant(x) and x not in others}
    _add_those_of_others(place, others, {x: first[x] for x in own}, chains)
    numbers = sorted((x for x in order if is_constant(x)), key=place.__getitem__)
    return [*numbers, *(x for x in order if not is_constant(x))]


def _of_gone(own: set[Instruction], chains: Iterable[list[Instruction]]) -> set[Instruction]:
    """Those that read a number older than one before them has, of their root.

    It had been that of something that is gone, such as what was given another layout: CSE keeps the oldest.
    """
    found: set[Instruction] = set()
    for chain in chains:
        highest = -1
        for x in reversed(chain):
            if x in own and _number(x) < highest:
                found.add(x)
            elif x in own:
                highest = _number(x)
    return found


def _add_those_of_others(
    place: dict[Instruction, tuple[int, bool]],
    others: dict[Instruction, int],
    own: dict[Instruction, int],
    chains: Iterable[list[Instruction]],
) -> None:
    """Give each of the `others` a `place`: a number that is free, or right behind one where there is none.

    It is between those of its chain, and as near as can be to what is used sooner and later. `others` and
    `own`, which has a constant to itself, tell when each is used first.
    """
    taken = {number for number, _ in place.values()}
    end = max(taken) + len(others) + 1
    beside: dict[Instruction, tuple[list[Instruction], int]] = {}
    for chain in chains:
        members = [x for x in chain if x in place or x in others]
        beside.update((x, (members, k)) for k, x in enumerate(members) if x in others)
    used = sorted(own, key=own.__getitem__)
    sooner, later = sorted(place[x][0] for x in own), list[int]()
    """Numbers of what is used sooner than what is looked at, and later."""
    passed: list[tuple[int, int]] = []
    """What is used as soon, or later than what comes next: when it is, and its number."""
    for x, when in sorted(others.items(), key=lambda use: -use[1]):
        while used and own[used[-1]] >= when:
            number = place[y := used.pop()][0]
            del sooner[bisect_left(sooner, number)]
            passed.append((own[y], number))
        for use, number in passed:
            if use > when:
                insort(later, number)
        passed = [p for p in passed if p[0] <= when]
        members, k = beside[x]
        lowest = max((place[y][0] for y in members[k + 1 :] if y in place), default=-1)
        highest = min((place[y][0] for y in members[:k] if y in place), default=end)
        at = bisect_left(later, highest)
        lowest = max(lowest, later[at - 1]) if at else lowest
        at = bisect_right(sooner, lowest)
        highest = min(highest, sooner[at]) if at < len(sooner) else highest
        free = next((n for n in range(lowest + 1, highest) if n not in taken), None)
        place[x] = (lowest, True) if free is None else (free, False)
        taken.add(place[x][0])
        passed.append((when, place[x][0]))


def _number(x: Instruction) -> int:
    return name_before_renaming(x.operands[0] if x.operands else x).number
