"""The order in which one pass made instructions, from the order of the text and the numbers in names.

A pass goes through a computation in the order in which a text of it would be written then. That of today may
be another one: operands have become others, users are gone. Numbers tell where it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, pairwise
from operator import lt

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.names import name_before_renaming


def in_order_of_pass(
    made: list[Instruction],
    aged: list[Instruction],
    named: frozenset[Instruction],
    *,
    expanded: bool = False,
) -> list[Instruction]:
    """What a pass `made`, given in the order of the text, in the order in which it did, if numbers tell.

    Numbers that the front end gave (those of `named`) tell nothing of a pass. `aged` are some of them of
    which the order is known. If operations were `expanded`, what one of them became stays together.
    """
    place = {x: k for k, x in enumerate(made)}
    chains = chains_of(x for x in made if x not in named)
    for chain in chains.values():
        chain.sort(key=lambda x: (name_before_renaming(x).number, place[x]))
    key = {x: (k, 0) for k, x in enumerate(made)}
    for chain in (*chains.values(), aged):
        needed = [max((place.get(o, 0) for o in x.operands), default=0) for x in chain]
        places = _raised([place[x] for x in chain], needed)
        key.update((x, (p, k)) for k, (x, p) in enumerate(zip(chain, places, strict=True), 1))
    if expanded:
        for before, x in pairwise(made):
            raised = place[before] < key[before][0] > key[x][0]
            if raised and x.op_name and x.op_name == before.op_name and _are_of_one(before, x):
                key[x] = key[before]
    return sorted(made, key=key.__getitem__)


def _are_of_one(before: Instruction, x: Instruction) -> bool:
    """Do they depend on each other, or does something on both? Numbers are spread for many."""
    if "broadcast" in (before.opcode, x.opcode) or before.opcode == x.opcode:
        return False
    return before in x.operands or not set(before.users).isdisjoint(x.users)


def _raised(places: list[int], needed: list[int]) -> list[int]:
    """The places with as few as possible moved so that none is lower than the one before.

    Of two ways to do that the one is taken that leaves fewer ahead of what they need.
    """
    highest = max(places, default=0)
    earlier = longest_rising(places)
    later = {len(places) - 1 - k for k in longest_rising([-place for place in reversed(places)])}

    def raised(kept: set[int]) -> list[int]:
        ahead = (place if k in kept else highest for k, place in reversed([*enumerate(places)]))
        most = [*accumulate(ahead, min)][::-1]
        return [*accumulate(map(min, places, most), max)]

    return min((raised(earlier), raised(later)), key=lambda found: sum(map(lt, found, needed)))


def agreed(chains: Iterable[list[Instruction]]) -> int:
    """How many instructions of such chains stand as the numbers in their names say."""
    return sum(_most_rising(name_before_renaming(x).number for x in chain) for chain in chains)


def _most_rising(numbers: Iterable[int]) -> int:
    """How many members a longest rising subsequence has."""
    ends: list[int] = []
    for number in numbers:
        length = bisect_left(ends, number)
        ends[length : length + 1] = [number]
    return len(ends)


def longest_rising(numbers: list[int]) -> set[int]:
    """Where the members of a longest rising subsequence are."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for k, number in enumerate(numbers):
        length = bisect_left(ends, number)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        at[length : length + 1] = [k]
    found: set[int] = set()
    k = at[-1] if at else -1
    while k >= 0:
        found.add(k)
        k = before[k]
    return found
