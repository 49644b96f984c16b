"""What the program computes of a number and of something smaller, both of them spread to one shape.

AlgebraicSimplifier computes it of what is smaller, with the number spread less, and spreads the result
(`TryToSinkBroadcastAfterOpWithUniqueNonScalarOperand`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). What there was has no users from then on, and
HloDCE takes all of it away: the last user of the spread number takes the place of each, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_called
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.holes import without


def with_last_in_place_of_sunk(
    spread: Instruction, users: list[Instruction], order: dict[Instruction, int], passes: int
) -> list[Instruction]:
    """The users of a number that is `spread`, given what had been there until less was computed.

    What has an id from `passes` on was made later, or is what is computed instead.
    """
    if not is_broadcast_of_constant(spread) or not spread.shape.rank or spread.op_name:
        return users
    own = [u for u in users if u.id < passes and not is_of_called(u)]
    if not own:
        return users
    sunk = (x for x in _readers_of_less(spread) if _is_sunk(x, spread, passes))
    places = sorted(at for x in sunk if (at := _place(x, spread, order, passes)) is not None)
    if not places:
        return users
    listed = [*((order[u], u) for u in own), *((place, None) for place in places)]
    listed.sort(key=lambda entry: entry[0])
    left = iter(u for _, u in without(listed, [(place, None) for place in places]) if u is not None)
    return [next(left) if u in own else u for u in users]


def _readers_of_less(spread: Instruction) -> Iterator[Instruction]:
    """What reads the same number, or the same spread to fewer dimensions."""
    (number,) = spread.operands
    for x in number.users:
        if x.opcode == "broadcast" and x.shape.rank < spread.shape.rank:
            yield from x.users
        else:
            yield x


def _place(x: Instruction, spread: Instruction, order: dict[Instruction, int], passes: int) -> int | None:
    """Where had been what was computed in the shape of `spread` and is `x` now? None if nothing had."""
    found, behind = set[Instruction](), [x]
    while behind:
        for u in behind.pop().users:
            if _is_of_pass(u):
                found.add(u)
            elif _is_sunk(u, spread, passes):
                behind.append(u)
    own = [u for u in found if u.shape.dimensions == spread.shape.dimensions]
    if not own or min(found, key=lambda u: u.id) not in own:
        return None  # it was spread to another shape, and reshaped since
    return min(order[u] for u in own)


def _is_of_pass(x: Instruction) -> bool:
    return x.opcode == "broadcast" and not is_of_program(x)


def _is_sunk(x: Instruction, spread: Instruction, passes: int) -> bool:
    if x.shape.rank >= spread.shape.rank or x.id < passes or is_of_called(x):
        return False
    return is_elementwise(x) and is_of_program(x)
