"""The trip counts of loops that XLA has not annotated (`xla/hlo/analysis/while_loop_analysis.cc`)."""

from collections.abc import Iterable
from dataclasses import dataclass

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import INTEGER_TYPES

_SAME_VALUE = frozenset("bitcast convert copy copy-done copy-start optimization-barrier reshape".split())
MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
"""The direction of a comparison with its sides exchanged."""
_WHOLE = -1
"""In place of the number of a tuple's element: the value is no tuple."""

_MOST = 100
"""Sums that are read; a loop that counts has a few."""


@dataclass(frozen=True, slots=True)
class _Linear:
    """`offset`, or the loop's counter plus `offset`."""

    counts: bool
    offset: int


def counted_trips(loop: Instruction) -> int | None:
    """The iterations of a loop that counts by a constant from a constant to a constant; None for any other.

    Copies, conversions, tuples, fusions and calls may stand between; XLA's analysis stops at some of them.
    """
    called = dict(loop.called)
    if len(called) != 2:  # a text that is cut
        return None
    counter = _Counter(loop, set())
    compare = counter.source(called["condition"].root, _WHOLE)[0]
    if compare.opcode != "compare":
        return None
    left, right = (counter.linear(x) for x in compare.operands)
    if left is None or right is None or left.counts == right.counts:
        return None
    direction = str(compare.attributes.raw("direction"))
    if right.counts:
        left, right, direction = right, left, MIRRORED.get(direction, direction)
    first = _Counter(None, counter.types).linear(loop.operands[0], counter.index)
    step = counter.linear(called["body"].root, counter.index)
    if first is None or step is None or not step.counts or not step.offset:
        return None
    begin, end = first.offset + left.offset, right.offset
    trips = _trips(begin, end, step.offset, direction)
    if trips is None:
        return None
    total = trips * step.offset
    numbers = (first.offset, first.offset + total, begin, begin + total, end, abs(step.offset))
    return trips if all(_holds(t, numbers) for t in counter.types) else None


def _trips(begin: int, end: int, step: int, direction: str) -> int | None:
    """The steps from `begin` until the comparison with `end` is false; None if it never is."""
    if direction in ("GT", "GE"):
        begin, end, step, direction = -begin, -end, -step, MIRRORED[direction]
    if direction == "EQ":
        return int(begin == end)
    if direction == "NE":
        trips, rest = divmod(end - begin, step)
        return trips if trips >= 0 and not rest else None
    end += direction == "LE"
    if begin >= end:
        return 0
    return -((begin - end) // step) if step > 0 else None


def _holds(element_type: str, numbers: Iterable[int]) -> bool:
    """True if the type has all these numbers, so that no conversion or addition changes one."""
    if element_type not in INTEGER_TYPES:
        return False
    bits = int(element_type[1:])
    least, most = (-(1 << bits - 1), 1 << bits - 1) if element_type[0] == "s" else (0, 1 << bits)
    return all(least <= n < most for n in numbers)


class _Counter:
    """Values in a loop, as numbers or relative to its counter; outside of any loop, as numbers."""

    def __init__(self, loop: Instruction | None, types: set[str]) -> None:
        self._loop, self._looked_at = loop, 0
        self.types = types
        """The element types that values have on their path; `source` and `linear` add to them."""
        self.index: int | None = None
        """The element of the loop's tuple that counts, once `linear` has come to it."""

    def linear(self, x: Instruction, index: int | None = _WHOLE) -> _Linear | None:
        """The value of `x`, or of this element of it; None for what is neither a number nor the counter."""
        self._looked_at += 1
        if index is None or self._looked_at > _MOST:
            return None
        x, index = self.source(x, index)
        if x.opcode == "constant" and index == _WHOLE and x.shape.element_type in INTEGER_TYPES:
            try:
                return _Linear(False, int((x.payload or "").strip("{} ")))
            except ValueError:  # many elements
                return None
        if x.opcode in ("add", "subtract") and index == _WHOLE:
            self.types.add(x.shape.element_type)
            left, right = (self.linear(o) for o in x.operands)
            if left is None or right is None or (right.counts and (left.counts or x.opcode == "subtract")):
                return None
            offset = right.offset if x.opcode == "add" else -right.offset
            return _Linear(left.counts or right.counts, left.offset + offset)
        if x.opcode != "parameter" or _only_caller(x) is not self._loop or self._loop is None:
            return None
        if self._is_carried(self._loop, index):
            return _Counter(None, self.types).linear(self._loop.operands[0], index)
        if self.index in (None, index):
            self.index = index
            return _Linear(True, 0)
        return None

    def source(self, x: Instruction, index: int) -> tuple[Instruction, int]:
        """The instruction that computes the value, and the element of its result."""
        while True:
            opcode = x.opcode
            if index == _WHOLE and x.shape.is_array and x.shape.element_type != "pred":
                self.types.add(x.shape.element_type)
            if opcode in _SAME_VALUE:
                index = _WHOLE if opcode == "copy-start" else index
                x = x.operands[0]
            elif opcode == "get-tuple-element" and index == _WHOLE:
                x, index = x.operands[0], x.tuple_index
            elif opcode == "tuple" and index != _WHOLE:
                x, index = x.operands[index], _WHOLE
            elif opcode in ("fusion", "call") and x.called:
                x = x.called[0][1].root
            elif opcode == "while" and self._is_carried(x, index):
                x = x.operands[0]
            elif opcode == "parameter" and (caller := _only_caller(x)) is not None:
                if caller is self._loop:
                    return x, index
                if caller.opcode in ("fusion", "call"):
                    x = caller.operands[x.parameter_number]
                elif caller.opcode == "while" and self._is_carried(caller, index):
                    x = caller.operands[0]
                else:
                    return x, index
            else:
                return x, index

    def _is_carried(self, loop: Instruction, index: int) -> bool:
        """True if each iteration passes the element on as it got it."""
        body = dict(loop.called)["body"]
        source, place = _Counter(loop, self.types).source(body.root, index)
        return source is body.parameters[0] and place == index


def _only_caller(parameter: Instruction) -> Instruction | None:
    """The instruction whose operand it is; None for the entry's, and where several call its computation."""
    computation = parameter.computation
    if computation is None or len(computation.callers) != 1:
        return None
    return computation.first_caller
