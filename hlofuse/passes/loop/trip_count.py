"""How often a loop runs (`xla/hlo/analysis/while_loop_analysis.cc`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.literals import integer_of
from hlofuse.passes.loop.parts import body_of, condition_of, is_element

_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


@dataclass(frozen=True)
class Counter:
    """A number that starts at `init` and grows by `step` for as long as it is below `bound`."""

    index: int
    init: int
    step: int
    bound: int
    """The first number it must not have."""

    @property
    def trips(self) -> int:
        return max(0, -(-(self.bound - self.init) // self.step))


def counter_of(loop: Instruction) -> Counter | None:
    """The counter of a loop whose bounds are constants; None for any other loop."""
    index = induction_variable(loop)
    init_tuple = loop.operands[0]
    if index is None or init_tuple.opcode != "tuple":
        return None
    init = integer_of(init_tuple.operands[index])
    step = _step(loop, index)
    bound = _bound(loop, index)
    if init is None or step is None or bound is None or step <= 0:
        return None
    return Counter(index, init, step, bound)


def trip_count(loop: Instruction) -> int | None:
    """`ComputeWhileLoopTripCount` of loops that count."""
    counter = counter_of(loop)
    return counter.trips if counter is not None else None


def induction_variable(loop: Instruction) -> int | None:
    """The one element the condition depends on, if it follows from itself
    (`GetLoopInductionVarTupleIdx`)."""
    condition, body = condition_of(loop), body_of(loop)
    read = _elements_read(condition.root, condition.parameters[0])
    if read is None or len(read) != 1 or body.root.opcode != "tuple":
        return None
    (index,) = read
    if _elements_read(_traced(body.root.operands[index]), body.parameters[0]) != {index}:
        return None
    return index


def _elements_read(x: Instruction, parameter: Instruction) -> set[int] | None:
    """Elements of the parameter that `x` depends on; None where it reads it otherwise."""
    found: set[int] = set()
    pending, seen = [x], {x}
    while pending:
        i = pending.pop()
        if i.opcode == "get-tuple-element" and i.operands[0] is parameter:
            found.add(i.tuple_index)
            continue
        if i is parameter or i.called:
            return None
        fresh = [o for o in i.operands if o not in seen]
        seen.update(fresh)
        pending += fresh
    return found


def _traced(x: Instruction) -> Instruction:
    """Behind copies and elements of tuples that are known (`TraceThroughCopyAndGteTupleChain`)."""
    while True:
        if x.opcode == "copy":
            x = x.operands[0]
        elif x.opcode == "get-tuple-element" and x.operands[0].opcode == "tuple":
            x = x.operands[0].operands[x.tuple_index]
        else:
            return x


def _step(loop: Instruction, index: int) -> int | None:
    body = body_of(loop)
    update = _traced(body.root.operands[index])
    if update.opcode != "add":
        return None
    a, b = update.operands
    for variable, constant in ((a, b), (b, a)):
        if constant.opcode == "constant" and is_element(_traced(variable), body.parameters[0], index):
            return integer_of(constant)
    return None


def _bound(loop: Instruction, index: int) -> int | None:
    condition = condition_of(loop)
    root, parameter = condition.root, condition.parameters[0]
    if root.opcode != "compare":
        return None
    a, b = root.operands
    direction = str(root.attributes.raw("direction"))
    if is_element(b, parameter, index):
        a, b, direction = b, a, _TURNED.get(direction, "")
    if not is_element(a, parameter, index) or b.opcode != "constant":
        return None
    bound = integer_of(b)
    shift: dict[str, Callable[[int], int]] = {"LT": lambda n: n, "LE": lambda n: n + 1}
    return shift[direction](bound) if bound is not None and direction in shift else None
