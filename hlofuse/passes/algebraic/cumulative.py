"""Cumulative sums of one constant (`HandleReduceWindow`)."""

from __future__ import annotations

from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import INTEGER_TYPES, Shape
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.facts import is_all
from hlofuse.passes.algebraic.functions import is_of_parameters
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import Value, rounded, values_of
from hlofuse.passes.common.shapes import array

_SEEN_THROUGH = ("reshape", "bitcast", "convert", "slice", "copy")


def handle_cumulative(c: Context, x: Instruction, window: Window) -> bool:
    """A sum of one value over all that come before becomes that value, so many times. True where nothing else
    is to be done."""
    operand, init = x.operands
    source = operand
    while source.opcode in _SEEN_THROUGH:
        source = source.operands[0]
    if source.opcode != "broadcast" or source.operands[0].shape.dimensions or not is_all(init, 0):
        return False
    if init.shape.dimensions or not is_of_parameters(x.called_computations[0], "add"):
        return False
    value = source.operands[0]
    while value.opcode in ("convert", "reshape", "bitcast"):
        value = value.operands[0]
    if value.opcode != "constant":
        return True
    if value.shape.dimensions:
        value = make.reshape(x, array(value.shape.element_type), value)
    dimension = _summed(window, operand.shape)
    if dimension is None:
        return False
    return _counted(c, x, value, dimension)


def _summed(window: Window, shape: Shape) -> int | None:
    """The one dimension that is summed up, if nothing else is done."""
    summed = [d for d, w in enumerate(window) if w.size > 1]
    if len(summed) != 1:
        return None
    (dimension,) = summed
    size = shape.dimensions[dimension]
    if window.dimensions[dimension] != WindowDimension(size, padding_low=size - 1):
        return None
    others = [w for d, w in enumerate(window) if d != dimension]
    if any(w.padding_low or w.padding_high or w.base_dilation != 1 for w in others):
        return None
    return dimension


def _counted(c: Context, x: Instruction, value: Instruction, dimension: int) -> bool:
    element_type = x.shape.element_type
    if value.shape.element_type != element_type:
        values = values_of(value)
        converted = _converted(values[0], element_type) if values else None
        if converted is None:
            return False
        value = make.scalar(x, element_type, converted)
    kind = "s64" if element_type == "s64" else "s32"
    shape = x.shape.with_element_type(kind)
    counter = make.iota(x, shape, dimension)
    one = make.broadcast(x, shape, make.scalar(x, kind, 1), ())
    count = make.binary(x, "add", counter, one)
    if element_type != kind:
        count = make.convert(x, count, element_type)
    times = make.broadcast(x, x.shape, value, ())
    return c.replace(x, make.binary(x, "multiply", times, count, x.shape))


def _converted(value: Value, element_type: str) -> Value | None:
    if isinstance(value, complex):
        return None
    return rounded(element_type, int(value) if element_type in INTEGER_TYPES else value)
