"""Values that the program computes again, under another name or in another call of a Python function.

The framework numbers operations of one name as it makes them, operands first, and HloCSE
(`xla/service/hlo_cse.cc`) keeps the first of those that are equal: where another reader of it was made, one
number of its name is missing. The one that went leaves the lists of its operands, and the last user there
takes its place. Of products that are derived the way back tells instead (`products_derived`).
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import filterfalse
from typing import NamedTuple, TypeAlias

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_called, is_of_derivative, outermost_call
from hlofuse.pipelines.names import is_of_older_release, is_of_program, name_before_renaming
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.numbers import Numbers
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.duplicates.normalized_indices import is_sign_of_index
from hlofuse.pipelines.users.duplicates.products_derived import derived_again


class Place(NamedTuple):
    """Where another one was."""

    met: int
    """When CSE's walk came to what read it."""
    ahead_of: int
    """The id of what was made right behind it."""


_RENAMED = frozenset({"div", "sub"})
"""What AlgebraicSimplifier makes products and sums of, with other names: missing numbers are of those."""

Repeated: TypeAlias = "dict[Instruction, list[Place]]"
"""By value the places of those equal to it that are gone."""


def repeated_in(computation: Computation, uses: Uses, numbers: Numbers, passes: int) -> Repeated:
    """Those of a `computation`; `passes` is the first id that a pass gave."""
    made = numbered_in(computation, passes)
    gaps = gaps_between(made, numbers)
    found: Repeated = {}
    for x, count in derived_again(computation).items():
        readers = sorted((u for u in x.users if not is_of_derivative(u)), key=lambda u: u.id)
        if x.id < passes and not is_of_called(x) and len(readers) == count + 1:
            found[x] = [Place(uses[x, r], _ahead_of(x, r)) for r in readers[1:]]
    for x in filterfalse(_is_derived, reversed(made)):
        readers = sorted((u for u in x.users if is_numbered(u, passes)), key=lambda u: u.id)
        places = [Place(uses[x, r], _ahead_of(x, r)) for r in readers[1:] if not _is_derived(r)]
        places += [place for r in readers for place in found.get(r, ())]
        root, _ = name_before_renaming(x)
        if root in _RENAMED or (readers and readers[0].id < x.id):
            continue  # what is read by what is older was met first rather than made (`older_equals`)
        if there := [place for place in places if gaps[root].take(place.ahead_of)]:
            found[x] = there
    return found


def numbered_in(computation: Computation, passes: int) -> list[Instruction]:
    """All such instructions, the oldest first."""
    return sorted((x for x in computation if is_numbered(x, passes)), key=lambda x: x.id)


def is_numbered(x: Instruction, passes: int) -> bool:
    """Is it of the program itself, where the framework numbers those of one name alone?"""
    if x.id >= passes or x.opcode not in ELEMENTWISE_OPCODES:
        return False
    return is_of_program(x) and not (is_of_called(x) or is_of_older_release(x))


def _is_derived(x: Instruction) -> bool:
    """Is it of a derivative, or what is derived? The derivative of what reads a value reads it, too."""
    return "jvp(" in (x.op_name or "")


class Gaps:
    """The numbers that are missing between those of one name, by where they were made."""

    def __init__(self, there: set[int]) -> None:
        self._there = there
        self._ids: list[int] = []
        self._numbers: list[int] = []
        self._taken: dict[int, int] = {}

    def add(self, made: int, number: int) -> None:
        self._ids.append(made)
        self._numbers.append(number)

    def take(self, ahead_of: int) -> bool:
        """Is one missing that was made ahead of that id? It is the one asked for then, and no other."""
        at = bisect_left(self._ids, ahead_of)
        if at in (0, len(self._ids)):
            return False
        between = range(self._numbers[at - 1] + 1, self._numbers[at])
        missing = sum(n not in self._there for n in between)
        taken = self._taken.get(at, 0)
        if taken >= missing:
            return False
        self._taken[at] = taken + 1
        return True


def gaps_between(made: list[Instruction], numbers: Numbers) -> dict[str, Gaps]:
    """By name what is missing between these, none of it taken yet."""
    gaps: dict[str, Gaps] = {}
    for x in made:
        root, number = name_before_renaming(x)
        gaps.setdefault(root, Gaps(numbers[root])).add(x.id, number)
    return gaps


def _ahead_of(x: Instruction, reader: Instruction) -> int:
    """The id of what was made first behind an `x` made for the `reader`."""
    behind = reader.operands[reader.operands.index(x) + 1 :]
    return min([o.id for o in behind if o.id == reader.id - 1] + [reader.id])


def with_last_in_place_of_repeated(
    producer: Instruction, users: list[Instruction], repeated: Repeated, uses: Uses, passes: int
) -> list[Instruction]:
    """The `users` of the `producer`, of which some were computed again.

    A broadcast that is not of a constant each had one of its own. Signs of an index are told of apart
    (`normalized_indices`).
    """
    told = (u for u in users if not is_sign_of_index(u, producer))
    again = [place for u in told for place in repeated.get(u, ())]
    gone = sorted(place.met for place in again if producer.id < place.ahead_of or producer.id >= passes)
    if not gone or (producer.opcode == "broadcast" and not is_broadcast_of_constant(producer)):
        return users
    own = [u for u in users if u.id < passes and not outermost_call(u)]
    listed: list[tuple[int, Instruction | None]] = [(uses[producer, u], u) for u in own]
    for met in reversed(gone):
        ahead = [k for k, (when, _) in enumerate(listed, 1) if when < met]
        listed.insert(ahead[-1] if ahead else 0, (met, None))
    by_age = iter(u for _, u in without(listed, [(met, None) for met in gone]) if u is not None)
    return [next(by_age) if u in own else u for u in users]
