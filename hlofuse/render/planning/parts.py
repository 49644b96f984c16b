"""A computation too big to draw, in parts: by source scope, then by stretches of the order of execution.

Every part is convex (see `arranging.acyclic`), so parts and what stays outside form a graph without cycles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hlofuse.ir import Instruction
from hlofuse.render.arranging.acyclic import levels

_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class Part:
    """Instructions drawn as one box."""

    number: int
    scope: str
    """Where in the user's program they came from; empty where the dump does not say."""
    instructions: list[Instruction]
    within: str = ""
    """The number of the part it is a part of."""

    @property
    def label(self) -> str:
        """`3`; `3.2` within part 3."""
        return f"{self.within}.{self.number}" if self.within else str(self.number)


def divide(
    units: Sequence[Instruction], wanted: int, behind: Callable[[Instruction], Iterable[Instruction]]
) -> list[Part]:
    """`units` (operands first) in about `wanted` parts, in the order of their first instructions.

    `behind` gives what a unit waits for among the units, past anything that has no box of its own.
    """
    index = {u: n for n, u in enumerate(units)}
    operands = [[index[o] for o in behind(u) if o in index] for u in units]
    scopes = _scopes(units, operands)
    order = range(len(units))
    groups: dict[tuple[object, int], list[int]] = {}
    for depth in range(max(map(len, scopes), default=0), -1, -1):
        label = {n: scopes[n][:depth] for n in order}
        level = levels(order, operands, label)
        groups = {}
        for n in order:
            groups.setdefault((label[n], level[n]), []).append(n)
        if len(groups) <= wanted:
            break
    largest = max(1, -(-len(units) // wanted))
    cost = _crossings(units, operands)
    pieces: list[list[int]] = []
    for members in groups.values():
        pieces += _stretches(members, largest, cost)
    pieces.sort(key=lambda p: p[0])
    return [
        Part(number, _span([scopes[n] for n in piece]), [units[n] for n in piece])
        for number, piece in enumerate(pieces, 1)
    ]


def _stretches(members: list[int], largest: int, cost: Sequence[int]) -> list[list[int]]:
    """`members` cut, near every `largest`-th, where the fewest values cross."""
    pieces = []
    start = 0
    while len(members) - start > largest + largest // 2:
        first, last = start + max(1, largest // 2), min(len(members) - 1, start + largest + largest // 2)
        cut = min(range(first, last + 1), key=lambda i: (cost[members[i]], abs(i - start - largest)))
        pieces.append(members[start:cut])
        start = cut
    pieces.append(members[start:])
    return pieces


def _crossings(units: Sequence[Instruction], operands: Sequence[Sequence[int]]) -> list[int]:
    """For every place in the order, how many values made before it are used at or after it."""
    last = list(range(len(units)))
    for n, own in enumerate(operands):
        for o in own:
            last[o] = n
    change = [0] * (len(units) + 2)
    for n, end in enumerate(last):
        change[n + 1] += 1
        change[end + 1] -= 1
    crossing, now = [], 0
    for n in range(len(units)):
        now += change[n]
        crossing.append(now)
    return crossing


def _scopes(units: Sequence[Instruction], operands: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
    """Each unit's place in the user's program, from `op_name` without the operation itself.

    What has none takes that of an operand, or else of a user: XLA made it for them.
    """
    found: list[tuple[str, ...] | None] = []
    for n, unit in enumerate(units):
        op_name = unit.op_name
        if op_name:
            found.append(tuple(op_name.split(";", 1)[0].split("/")[:-1]))
        else:
            found.append(next((s for o in operands[n] if (s := found[o]) is not None), None))
    for n in range(len(units) - 1, -1, -1):
        for o in operands[n]:
            if found[o] is None:
                found[o] = found[n]
    return [s or () for s in found]


def _span(scopes: Sequence[tuple[str, ...]]) -> str:
    """What the scopes have in common, and from where to where they go: `fwd/layer_0 … layer_7`."""
    low, high = min(scopes), max(scopes)
    n = 0
    while n < min(len(low), len(high)) and low[n] == high[n]:
        n += 1
    common = "/".join(low[:n])
    # A scope may be left in passing, for a single operation: ends that are deeper say where it was.
    first, last = (next((s[n] for s in way if len(s) > n), "") for way in (scopes, scopes[::-1]))
    if first != last and _stem(first) == _stem(last):
        return f"{common}/{first} … {last}" if common else f"{first} … {last}"
    return common


def _stem(name: str) -> str:
    """The name without its number: layers of one kind share it."""
    return _DIGITS.sub("", name)
