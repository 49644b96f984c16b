"""What was made anew in the body of a loop or a branch, although it bears a name of the program.

Numbers of a root rise with age, but for those in the front end's windows. Of the clone of a computation that
is so of all: its instructions are as old among themselves as they were, and are named in that order
(`HloModule::AddComputationInternal`, `xla/hlo/ir/hlo_module.cc`, uniquifies one after another). So what has a
higher number than something that is computed of it was made again, as ReshapeMover does and leaves the name,
and so was what follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import name_before_renaming

_NOT_TOLD = frozenset({"constant", "get-tuple-element", "tuple"})
_OF_PROGRAM = (Maker.FRONT_END, Maker.INLINER)
_SHARE = 3
"""One of so many, of those behind the first one, has to be contradicted by the data."""


def made_again_by_numbers(
    computation: Computation, makers: Mapping[Instruction, Maker], named: Collection[Instruction]
) -> list[Instruction]:
    """Those that calls brought in, or a clone has of the program, of which numbers tell it.

    The numbers of those `named` are the front end's.
    """
    chains: dict[str, list[Instruction]] = {}
    for x, maker in makers.items():
        if maker in _OF_PROGRAM and x.opcode not in _NOT_TOLD and x not in named:
            chains.setdefault(name_before_renaming(x).root, []).append(x)
    place: dict[Instruction, int] = {}
    needed: dict[Instruction, int] = {}
    """By bits, the places of all that something is computed of."""
    for k, x in enumerate(computation):
        place[x] = k
        needed[x] = 0
        for o in x.operands:
            needed[x] |= needed.get(o, 0) | 1 << place.get(o, k)
    found: list[Instruction] = []
    for chain in chains.values():
        chain.sort(key=lambda x: name_before_renaming(x).number)
        against = [
            (x, y)
            for k, x in enumerate(chain)
            for y in chain[k + 1 :]
            if needed[x] >> place[y] & 1 and makers[x] >= makers[y]
        ]
        found += chain[_beginning(chain, _contradicted(against)) :]
    return found


def _contradicted(against: list[tuple[Instruction, Instruction]]) -> set[Instruction]:
    """Of pairs in which numbers are against the data those with the higher one, as few as are enough.

    Something with a lower one that alone is against many was put in the place of another one.
    """
    found: set[Instruction] = set()
    while against:
        lower, of_lower = Counter(x for x, _ in against).most_common(1)[0]
        higher, of_higher = Counter(y for _, y in against).most_common(1)[0]
        if of_lower > of_higher:
            against = [pair for pair in against if pair[0] is not lower]
        else:
            found.add(higher)
            against = [pair for pair in against if pair[1] is not higher]
    return found


def _beginning(chain: list[Instruction], later: Collection[Instruction]) -> int:
    """Where what was made again begins. What CSE kept is read by older ones as well."""
    first, told = len(chain), 0
    for k in reversed(range(len(chain))):
        if chain[k] in later:
            told += 1
            if _SHARE * told >= len(chain) - k:
                first = k
    return first
