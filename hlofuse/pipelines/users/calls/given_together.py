"""Results of a call that nothing in it connects but what they were computed from.

CallInliner (`xla/service/call_inliner.cc`) clones what a function computes in a row: ids run on from its
first operation to its last, so that two of them with nothing else in between are of one call, or of calls
that follow on each other. Ids have to be XLA's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.calls.clones import readers_of
from hlofuse.pipelines.users.calls.results import CallOf
from hlofuse.pipelines.users.common.constants import is_made_of_nothing


def has_result_given_the_same(result: Instruction, call: str, call_of: CallOf) -> bool:
    """Does the call that computed `result` have another one of what it was given, or of a loop in it?

    The derivative of a product multiplies the same by either factor. What reads it in the same place, as a
    choice by one predicate does, is of the next call.
    """
    found = {result}
    pending = [*_computed_of_given(result, call, call_of), *_computed_by_loop(result, call, call_of)]
    while pending:
        x = pending.pop()
        if x in found or not _is_in_row(result, x, call, call_of):
            continue
        if _is_read_outside(x, call, call_of):
            return True
        found.add(x)
        pending += [u for u in x.users if call_of(u) == call]
    return False


def _computed_of_given(result: Instruction, call: str, call_of: CallOf) -> Iterator[Instruction]:
    for given in dict.fromkeys(result.operands):
        if is_made_of_nothing(given) or call_of(given) == call:
            continue
        places = _places(given, result)
        for x in given.users:
            if x is not result and call_of(x) == call and _places(given, x) != places:
                yield x


def _places(given: Instruction, x: Instruction) -> list[int]:
    return [k for k, o in enumerate(x.operands) if o is given]


def _computed_by_loop(result: Instruction, call: str, call_of: CallOf) -> Iterator[Instruction]:
    """What else a loop of the same call gives back, or is computed of that."""
    for element in result.operands:
        if element.opcode != "get-tuple-element" or element.operands[0].opcode != "while":
            continue
        loop = element.operands[0]
        if call_of(loop) == call:
            others = [e for e in loop.users if e is not element]
            yield from others
            yield from (u for e in others for u in e.users if u is not result)


def _is_read_outside(x: Instruction, call: str, call_of: CallOf) -> bool:
    return any(u.op_name and call_of(u) != call for u in readers_of(x))


def _is_in_row(x: Instruction, other: Instruction, call: str, call_of: CallOf) -> bool:
    """Is everything that was made between the two of the `call`, too? An element bears no name."""
    if other.opcode == "get-tuple-element":
        return True
    if call_of(other) != call or x.computation is None:
        return False
    made = x.computation.instructions
    first, last = sorted((x.id, other.id))
    between = made[bisect_left(made, first, key=_id) : bisect_right(made, last, key=_id)]
    return all(not y.op_name or call_of(y) == call for y in between)


def _id(x: Instruction) -> int:
    return x.id
