"""What was made anew in the body of a loop or a branch, although it bears a name of the program.

Numbers of a root rise with age, but for those in the front end's windows. Of the clone of a computation that
is so of all: its instructions are as old among themselves as they were, and are named in that order
(`HloModule::AddComputationInternal`, `xla/hlo/ir/hlo_module.cc`, uniquifies one after another). So what has a
higher number than something that is computed of it was made again, as ReshapeMover does and leaves the name,
and so was what follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import name_before_renaming

_NOT_TOLD = frozenset({"constant", "get-tuple-element", "tuple"})
OF_PROGRAM = (Maker.FRONT_END, Maker.INLINER)
_SHARE = 3
"""One of so many, of those behind the first one, has to be contradicted by the data."""


def made_again_by_numbers(
    computation: Computation, makers: Mapping[Instruction, Maker], named: Collection[Instruction]
) -> list[Instruction]:
    """Those that calls brought in, or a clone has of the program, of which numbers tell it.

    The numbers of those `named` are the front end's.
    """
    of_program = (x for x, maker in makers.items() if maker in OF_PROGRAM)
    chains = chains_of(x for x in of_program if x.opcode not in _NOT_TOLD and x not in named)
    place: dict[Instruction, int] = {}
    needed: dict[Instruction, int] = {}
    """By bits, the places of all that something is computed of."""
    for k, x in enumerate(computation):
        place[x] = k
        needed[x] = 0
        for o in x.operands:
            needed[x] |= needed.get(o, 0) | 1 << place.get(o, k)
    at = list(computation)
    found: list[Instruction] = []
    for chain in chains.values():
        chain.sort(key=lambda x: name_before_renaming(x).number)
        against: dict[Instruction, list[Instruction]] = {}
        behind = 0
        for x in reversed(chain):
            above = (at[k] for k in _bits(needed[x] & behind))
            if higher := [y for y in above if makers[x] >= makers[y]]:
                against[x] = higher
            behind |= 1 << place[x]
        found += chain[_beginning(chain, _contradicted(chain, against)) :]
    return found


def _bits(value: int) -> Iterator[int]:
    while value:
        lowest = value & -value
        yield lowest.bit_length() - 1
        value ^= lowest


def _contradicted(
    chain: list[Instruction], against: Mapping[Instruction, list[Instruction]]
) -> set[Instruction]:
    """Of pairs in which numbers are against the data those with the higher one, as few as are enough.

    Something with a lower one that alone is against many was put in the place of another one.
    """
    lower_of: dict[Instruction, list[Instruction]] = {}
    for below, contradicting in against.items():
        for above in contradicting:
            lower_of.setdefault(above, []).append(below)
    lower, higher = _Left(chain, against), _Left(chain, lower_of)
    found: set[Instruction] = set()
    while (x := lower.most()) and (y := higher.most()):
        if lower.count[x] > higher.count[y]:
            lower.drop(x, higher)
        else:
            found.add(y)
            higher.drop(y, lower)
    return found


class _Left:
    """How many pairs each is in that are left, by the place in the chain."""

    def __init__(self, chain: list[Instruction], others: Mapping[Instruction, list[Instruction]]) -> None:
        self._others = others
        self._heap = [(-len(others[x]), k) for k, x in enumerate(chain) if x in others]
        self._chain = chain
        self.count = {x: len(listed) for x, listed in others.items()}
        heapify(self._heap)

    def most(self) -> Instruction | None:
        """What is in most of them, of several the first of the chain."""
        while self._heap:
            known, k = self._heap[0]
            count = self.count[self._chain[k]]
            if count == -known and count:
                return self._chain[k]
            heappop(self._heap)
            if count:
                heappush(self._heap, (-count, k))
        return None

    def drop(self, x: Instruction, other_side: _Left) -> None:
        for other in self._others[x]:
            if other_side.count[other]:
                other_side.count[other] -= 1
        self.count[x] = 0


def _beginning(chain: list[Instruction], later: Collection[Instruction]) -> int:
    """Where what was made again begins. What CSE kept is read by older ones as well."""
    first, told = len(chain), 0
    for k in reversed(range(len(chain))):
        if chain[k] in later:
            told += 1
            if _SHARE * told >= len(chain) - k:
                first = k
    return first
