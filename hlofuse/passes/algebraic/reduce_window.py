"""Reductions over windows."""

from dataclasses import replace

from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension, Window, WindowDimension
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import INTEGER_TYPES, Shape
from hlofuse.passes.algebraic.context import Context, is_all, is_of_parameters
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
    dimension = _summed_dimension(window, operand.shape)
    if dimension is None:
        return False
    return _counted(c, x, value, dimension)


def _summed_dimension(window: Window, shape: Shape) -> int | None:
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
        converted = _convert(values[0], element_type) if values else None
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


def _convert(value: Value, element_type: str) -> Value | None:
    if isinstance(value, complex):
        return None
    return rounded(element_type, int(value) if element_type in INTEGER_TYPES else value)


def handle_reduce_window(c: Context, x: Instruction) -> bool:
    """Simplify a reduce-window of one array."""
    if x.shape.is_tuple or len(x.operands) != 2:
        return False
    operand, init = x.operands
    window: Window = x.attributes["window"]
    if 0 in (operand.shape.element_count, x.shape.element_count):
        return c.replace(x, make.broadcast(x, x.shape, init, ()))
    if not operand.shape.dimensions:
        return c.replace(x, operand)
    if not (handle_cumulative(c, x, window) or _elementwise(c, x, window) or _as_reduce(c, x, window)):
        return _fold_pad(c, x, window)
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
    if not c.options.window_reduce_to_reduce:
        return False
    plain = all(
        w.stride == w.window_dilation == w.base_dilation == 1 and not w.padding_low and not w.padding_high
        for w in window
    )
    reduced = [d for d, w in enumerate(window) if w.size != 1]
    if not plain or not reduced or any(x.shape.dimensions[d] != 1 for d in reduced):
        return False
    new = make.reduce(x, x.operands[0], x.operands[1], reduced, x.called_computations[0])
    return c.replace(x, make.reshape(x, x.shape, new))


def _fold_pad(c: Context, x: Instruction, window: Window) -> bool:
    """The pad ahead becomes the window's own; not through a convert."""
    pad, init = x.operands
    if pad.opcode != "pad":
        return False
    config: PaddingConfig = pad.attributes["padding"]
    interior = any(p.interior for p in config)
    if interior and any(w.base_dilation != 1 for w in window):
        return False
    value = pad.operands[1]
    if value is not init and not (
        value.opcode == "constant" == init.opcode
        and value.shape.key == init.shape.key
        and value.literal.canonical_text == init.literal.canonical_text
    ):
        return False
    source = pad.operands[0]
    if _reads_one_element(source, config, window):
        return False
    wider = Window(
        tuple(
            replace(
                w,
                padding_low=w.padding_low + w.base_dilation * p.low,
                padding_high=w.padding_high + w.base_dilation * p.high,
                base_dilation=1 + p.interior if p.interior else w.base_dilation,
            )
            for w, p in zip(window, config, strict=True)
        )
    )
    return c.replace(
        x,
        make.add(
            x,
            "reduce-window",
            x.shape,
            [source, init],
            called=[("to_apply", x.called_computations[0])],
            window=wider,
        ),
    )


def _reads_one_element(source: Instruction, config: PaddingConfig, window: Window) -> bool:
    """XLA makes a broadcast of it then."""
    if any(w.stride != 1 for w in window) or any(p.low != p.high or p.interior for p in config):
        return False
    return all(
        n == 1 if p.low else (n == 1 or w.size == 1)
        for n, p, w in zip(source.shape.dimensions, config, window, strict=True)
    )
