"""Numbers of names that cannot be the program's, as the data would go back in them.

A program makes what is read in front of what reads it. Where an operation reaches another one of its root
that has a higher number, a pass numbered one of the two. One that reads the other at once tells nothing: of
two equal ones CSE keeps the one that it meets first (`RunOnComputation` of `xla/service/hlo_cse.cc`), which
may be the later one of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import TypeAlias

from hlofuse.analysis.components import components
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction


@dataclass(frozen=True)
class AgainstData:
    """Of the operations of one root."""

    reached: Mapping[int, int]
    """By number, which higher numbers are reached: a bit for each."""

    def in_window(self, first: int, last: int) -> int:
        """How many numbers from `first` to `last` are reached by lower ones of these."""
        found = 0
        for number, higher in self.reached.items():
            if first <= number <= last:
                found |= higher
        return (found & ((1 << (last + 1)) - 1)).bit_count()

    def fewest(self, last: int) -> list[int]:
        """The numbers that reach higher ones up to `last`, or those reached, if they are fewer.

        One that many reach is the latest of equal ones, of which CSE met it first, through what reads it.
        """
        up_to = (1 << (last + 1)) - 1
        reaching = sorted(n for n, higher in self.reached.items() if higher & up_to)
        bits = reduce(or_, self.reached.values(), 0) & up_to
        reached = [n for n in range(bits.bit_length()) if bits >> n & 1]
        return reached if len(reached) < len(reaching) else reaching


NOTHING = AgainstData({})


def against_data(
    computation: Computation, chains: Mapping[str, Mapping[Instruction, int]]
) -> dict[str, AgainstData]:
    """By root where there is anything, of operations given by root with their numbers.

    A root is told only of circles that would be gone without its numbers: where several go back, the data is
    not the program's.
    """
    edges = _edges(computation, chains)
    found: dict[str, AgainstData] = {}
    for circle in components(edges):
        members = set(circle)
        for root, number in chains.items():
            own = {x: number[x] for x in number.keys() & members}
            if len(own) > 1 and (higher := _reached(computation, members, own)):
                rest = {x: [y for y in edges[x] if y in members] for x in circle}
                for x, following in pairwise(sorted(own, key=own.__getitem__)):
                    if x not in following.operands:
                        rest[following].remove(x)
                if not components(rest):
                    found[root] = AgainstData({**found.get(root, NOTHING).reached, **higher})
    return found


def _reached(
    computation: Computation, members: set[Instruction], number: Mapping[Instruction, int]
) -> dict[int, int]:
    """Which higher numbers are reached within a circle, by number."""
    reached: dict[Instruction, int] = {}
    higher: dict[int, int] = {}
    for x in computation:
        if x in members:
            bits = 0
            for o in x.operands:
                if o in members and not _is_found_equal(x, o, number):
                    bits |= reached[o] | (1 << number[o] if o in number else 0)
            reached[x] = bits
            if x in number and (above := bits >> number[x] + 1):
                higher[number[x]] = above << number[x] + 1
    return higher


def _is_found_equal(x: Instruction, source: Instruction, number: Mapping[Instruction, int]) -> bool:
    return x in number and source in number and number[source] > number[x]


Edges: TypeAlias = "dict[Instruction, list[Instruction]]"


def _edges(computation: Computation, chains: Mapping[str, Mapping[Instruction, int]]) -> Edges:
    """What each instruction comes behind: by the data, but for equal ones, and by the numbers."""
    edges = {x: [*dict.fromkeys(x.operands)] for x in computation}
    for number in chains.values():
        for x in number:
            edges[x] = [o for o in edges[x] if not _is_found_equal(x, o, number)]
        for before, x in pairwise(sorted(number, key=number.__getitem__)):
            if before not in edges[x]:
                edges[x].append(before)
    return edges
