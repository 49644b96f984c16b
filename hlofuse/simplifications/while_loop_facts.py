"""Which element of a loop counts its turns, and from where to where (`xla/hlo/analysis/while_loop_analysis.cc`).

Conditions and counters inside calls or fusions are not followed.
"""

from __future__ import annotations

from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.simplifications.literals import scalar_of


class Turns(NamedTuple):
    """A counter's first value, its step, and how often the body runs."""

    start: int
    step: int
    count: int


def parts_of(loop: Instruction) -> tuple[Computation, Computation]:
    """Condition and body."""
    called = dict(loop.called)
    return called["condition"], called["body"]


def counter_of(loop: Instruction) -> int | None:
    """The tuple index of the induction variable (`GetLoopInductionVarTupleIdx`)."""
    condition, body = parts_of(loop)
    read = _elements_read(condition.root, condition.parameters[0])
    if read is None or len(read) != 1 or loop.operands[0].opcode != "tuple" or body.root.opcode != "tuple":
        return None
    (index,) = read
    update = body.root.operands[index]
    while update.opcode == "copy":
        update = update.operands[0]
    return index if _elements_read(update, body.parameters[0]) == {index} else None


def turns_of(loop: Instruction, index: int) -> Turns | None:
    """For a counter that starts, grows and ends at constants (`MatchTrivialLoopRange`)."""
    condition, body = parts_of(loop)
    start = integer_of(loop.operands[0].operands[index])
    update = body.root.operands[index]
    if start is None or update.opcode != "add":
        return None
    counters = [o for o in update.operands if _is_element(o, body.parameters[0], index)]
    steps = [integer_of(o) for o in update.operands if o not in counters]
    if len(counters) != 1 or not steps or steps[0] is None or steps[0] <= 0:
        return None
    root = condition.root
    if root.opcode != "compare":
        return None
    bounds = [o for o in root.operands if not _is_element(o, condition.parameters[0], index)]
    end = integer_of(bounds[0]) if len(bounds) == 1 else None
    direction = root.attributes.get("direction")
    if end is None or direction not in ("LT", "GT", "LE", "GE"):
        return None
    last = end - (direction in ("LT", "GT"))
    step = steps[0]
    last -= (last - start) % step
    if last < 0 or start < 0:
        return None
    return Turns(start, step, (last - start) // step + 1)


def integer_of(x: Instruction) -> int | None:
    """The value of an integer constant of one element."""
    value = scalar_of(x) if x.opcode == "constant" and x.shape.is_effective_scalar else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_element(x: Instruction, parameter: Instruction, index: int) -> bool:
    return x.opcode == "get-tuple-element" and x.operands[0] is parameter and x.tuple_index == index


def _elements_read(out: Instruction, parameter: Instruction) -> set[int] | None:
    """The elements that a value is worked out from by scalar operations alone (`GetGTEDependenceIndices`)."""
    found: set[int] = set()
    seen: set[Instruction] = set()
    work = [out]
    while work:
        x = work.pop()
        if x in seen:
            continue
        seen.add(x)
        if x.opcode == "parameter" or not x.shape.is_array or x.shape.rank or x.called:
            return None
        if x.opcode == "get-tuple-element":
            if x.operands[0] is not parameter:
                return None
            found.add(x.tuple_index)
        elif x.opcode == "custom-call":
            return None
        else:
            work += x.operands
    return found or None
