"""Reductions over windows."""

from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension, Window, WindowDimension
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.facts import is_all, is_of_parameters
from hlofuse.passes.common import make
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
    if value.opcode != "constant":
        return True
    dimension = _summed(window, operand.shape)
    if dimension is None or value.shape.element_type != x.shape.element_type:
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
    kind = "s64" if element_type == "s64" else "s32"
    shape = x.shape.with_element_type(kind)
    counter = make.iota(x, shape, dimension)
    one = make.broadcast(x, shape, make.scalar(x, kind, 1), ())
    count = make.binary(x, "add", counter, one)
    if element_type != kind:
        count = make.convert(x, count, element_type)
    times = make.broadcast(x, x.shape, value, ())
    return c.replace(x, make.binary(x, "multiply", times, count, x.shape))


def handle_reduce_window(c: Context, x: Instruction) -> bool:
    """Of one array."""
    if x.shape.is_tuple or len(x.operands) != 2:
        return False
    operand, init = x.operands
    window: Window = x.attributes["window"]
    if 0 in (operand.shape.element_count, x.shape.element_count):
        return c.replace(x, make.broadcast(x, x.shape, init, ()))
    if not operand.shape.dimensions:
        return c.replace(x, operand)
    handle_cumulative(c, x, window) or _elementwise(c, x, window) or _as_reduce(c, x, window)
    return False


def _elementwise(c: Context, x: Instruction, window: Window) -> bool:
    """A window of one element, moved by one."""
    operand, init = x.operands
    trivial = all(
        w.size == w.stride == w.window_dilation == w.base_dilation == 1 and not w.window_reversal
        for w in window
    )
    function = x.called_computations[0]
    opcode = next((op for op in ("add", "minimum", "maximum") if is_of_parameters(function, op)), None)
    if not trivial or opcode is None:
        return False
    new = make.binary(operand, opcode, operand, make.broadcast(init, operand.shape, init, ()))
    if any(w.padding_low > 0 or w.padding_high > 0 for w in window):
        config = PaddingConfig(tuple(PaddingDimension(w.padding_low, w.padding_high) for w in window))
        new = make.pad(new, array(x.shape.element_type, x.shape.dimensions), new, init, config)
    return c.replace(x, new)


def _as_reduce(c: Context, x: Instruction, window: Window) -> bool:
    """Windows as large as the array."""
    plain = all(
        w.stride == w.window_dilation == w.base_dilation == 1 and not w.padding_low and not w.padding_high
        for w in window
    )
    reduced = [d for d, w in enumerate(window) if w.size != 1]
    if not plain or not reduced or any(x.shape.dimensions[d] != 1 for d in reduced):
        return False
    new = make.reduce(x, x.operands[0], x.operands[1], reduced, x.called_computations[0])
    return c.replace(x, make.reshape(x, x.shape, new))
