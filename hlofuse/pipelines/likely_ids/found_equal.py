"""What reads an operation that the program has behind it.

Of two equal operations CSE keeps the one that it meets first (`RunOnComputation` of
`xla/service/hlo_cse.cc`), which may be the later one of the program: its number is higher than those of
operations that need it today.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def found_equal(x: Instruction, sources: Iterable[Instruction]) -> list[Instruction]:
    """The `sources` of the root of `x` that the program has behind it."""
    root, number = name_before_renaming(x)
    names = {y: name_before_renaming(y) for y in sources if y.opcode != "constant"}
    return [y for y, name in names.items() if name.root == root and name.number > number]


def found_later(
    sources: Mapping[Instruction, Iterable[Instruction]], chains: Iterable[list[Instruction]]
) -> list[tuple[Instruction, Instruction]]:
    """Readers, and what they read, where two or more of a root need one with a higher number.

    `sources` are in an order that has what is read in front; each of the `chains` is of one root.
    """
    found: list[tuple[Instruction, Instruction]] = []
    for chain in chains:
        if len(chain) < _FEWEST:
            continue
        bit = {x: 1 << k for k, x in enumerate(sorted(chain, key=_number))}
        needed: dict[Instruction, int] = {}
        """Which of the chain each operation needs."""
        against: dict[int, list[Instruction]] = {}
        for x, read in sources.items():
            bits = 0
            for o in read:
                bits |= needed[o] | bit.get(o, 0)
            needed[x] = bits
            own = bit.get(x, 0)
            if own and bits > own:
                higher = bits & ~(2 * own - 1)
                while higher:
                    lowest = higher & -higher
                    against.setdefault(lowest, []).append(x)
                    higher ^= lowest
        for x in chain:
            if len(lower := against.get(bit[x], [])) > 1:
                found += ((y, x) for y in _on_the_way(x, lower, sources, needed, bit[x]))
    return found


_FEWEST = 3


def _on_the_way(
    x: Instruction,
    lower: Iterable[Instruction],
    sources: Mapping[Instruction, Iterable[Instruction]],
    needed: Mapping[Instruction, int],
    bit: int,
) -> list[Instruction]:
    """What reads `x` itself and is needed by any of the `lower`, or is one of them.

    So does what has a lower number than another one of its root that does.
    """
    pending = dict.fromkeys(lower)
    for y in (order := [*pending]):
        for o in sources[y]:
            if o not in pending and needed[o] & bit:
                pending[o] = None
                order.append(o)
    last: dict[str, int] = {}
    for y in pending:
        if x in sources[y]:
            root, number = name_before_renaming(y)
            last[root] = max(last.get(root, 0), number)
    names = {y: name_before_renaming(y) for y in sources if x in sources[y]}
    return [y for y, name in names.items() if name.number <= last.get(name.root, -1)]


def _number(x: Instruction) -> int:
    return name_before_renaming(x).number
