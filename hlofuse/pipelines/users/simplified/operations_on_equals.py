"""Operations of the program with twice the same operand, which they give back, and which are gone therefore.

The framework numbers places in the source as it comes to them, computation by computation, and operations in
that order too. A place that the first to bear it has out of turn was also that of one before, which is gone.
Ids have to be XLA's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import inf
from typing import NamedTuple, TypeAlias

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import last_of_program
from hlofuse.pipelines.calls_in_names import outermost_call, scope
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert
from hlofuse.pipelines.users.floats.widened import served_by

Readers: TypeAlias = "dict[Instruction, frozenset[Instruction]]"
"""By value what may have read the operation that gave it back."""

_OF_EQUALS = frozenset({"max", "min", "and", "or"})


class _Gap(NamedTuple):
    """The ids of two operations with one that is gone between."""

    before: int
    behind: int


def readers_of_operations_on_equals(computation: Computation) -> Readers:
    """Those of values of the `computation`, where only one value can be meant."""
    if not computation.is_entry:
        return {}
    last = last_of_program(computation.root)
    own = [x for x in computation if x.id <= last and not scope(x)]
    found: Readers = {}
    for gap in _gaps(computation, own):
        values = [x for x in own if x.id <= gap.before and x.shape.is_array and not is_made_of_nothing(x)]
        readers = {x: frozenset(u for u in x.users if gap.before < u.id <= last) for x in values}
        meant = [x for x in values if len(x.users) > 1 and readers[x]]
        if len(meant) == 1:
            found[meant[0]] = readers[meant[0]]
    return found


def with_last_in_place_of_equals(
    producer: Instruction, users: list[Instruction], uses: Uses, readers: Readers
) -> list[Instruction]:
    """The users of `producer`, the last in the place of such an operation, if that had it for an operand.

    AlgebraicSimplifier (`HandleMaximum` and others, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`)
    gives its readers the operand.
    """
    if users[-1] not in readers.get(producer, ()):
        return users
    first = min(uses[producer, u] for u in readers[producer])
    others = users[:-1]
    place = sum(uses[producer, u] < first for u in others)
    return [*others[:place], users[-1], *others[place:]]


def with_larger_and_smaller_gone(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `x`, of which the framework's `hypot(x, x)` took the larger of both, and the smaller.

    It looks whether one is infinite before that. Both came to be `x` (`HandleMaximum`, `HandleMinimum`); the
    smaller of them is divided by the larger.
    """
    infinite = [u for u in users if any(map(_is_of_twice_the_same, u.users))]
    divided = [u for u in users if _is_divided_by_itself(served_by(u), x)]
    if len(infinite) != 1 or len(divided) != 1:
        return users
    larger = [u for u in users if u not in infinite and u not in divided]
    listed: list[Instruction | str] = [*infinite, "larger", "smaller", *larger]
    listed = without([*without(listed, ["larger"]), *divided], ["smaller"])
    return [u for u in listed if isinstance(u, Instruction)]


def _is_of_twice_the_same(x: Instruction) -> bool:
    return x.opcode == "or" and x.operands[0] is x.operands[1] and operation(x) == "or"


def _is_divided_by_itself(quotient: Instruction, x: Instruction) -> bool:
    """Is it `x` by `where(x == 0, 1, x)`?"""
    if quotient.opcode != "divide" or outermost_call(quotient).rpartition("/")[2] != "jit(hypot)":
        return False
    above, beneath = (o.operands[0] if is_inserted_convert(o) else o for o in quotient.operands)
    return above is x and beneath.opcode == "select" and x in beneath.operands


def _gaps(computation: Computation, own: list[Instruction]) -> Iterator[_Gap]:
    """Where an operation of `_OF_EQUALS` is gone: others bear its place, in that or in another call."""
    module = computation.module
    assert module is not None
    frames = module.stack_frames.frames
    elsewhere = {stack_frame(x) for c in module.computations if c is not computation for x in c}
    elsewhere |= module.stack_frames.callers()
    first: dict[int, int] = {}
    operations: dict[int, set[str]] = defaultdict(set)
    for x in own:
        number = stack_frame(x)
        operations[frames.get(number, {}).get("file_location_id", 0)].add(operation(x))
        first[number] = min(x.id, first.get(number, x.id))
    numbers = sorted(frames.keys() - elsewhere)
    behind = _next_in_turn(numbers, first)
    before: int | None = None
    for number in numbers:
        here = operations[frames[number].get("file_location_id", 0)]
        if number in first and first[number] < behind[number]:
            before = first[number]
        elif before is not None and behind[number] < inf and here and here <= _OF_EQUALS:
            yield _Gap(before, int(behind[number]))


def _next_in_turn(numbers: list[int], first: dict[int, int]) -> dict[int, float]:
    """By number of a place, the id of the first operation with a place that comes behind it."""
    found: dict[int, float] = {}
    behind = inf
    for number in reversed(numbers):
        found[number] = behind
        behind = min(behind, first.get(number, behind))
    return found
