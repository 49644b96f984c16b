"""Reductions (`HandleReduce`)."""

import math

from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir import Instruction, replace
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension, Window, WindowDimension
from hlofuse.matching.key import Keys
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import replace_users
from hlofuse.passes.common.literals import bounds, scalar_of
from hlofuse.passes.common.shapes import array, is_sorted, others, unmodified_dimensions
from .context import (
    Context,
    equivalent,
    is_argument_of_extreme,
    is_floating,
    is_of_parameters,
    is_scalar_zero,
)
from .dot import change_window


def handle_reduce(c: Context, reduce: Instruction) -> bool:
    count = reduce.operand_count // 2
    arg = reduce.operand
    shapes = reduce.shape.results
    shape = shapes[0]
    values = []
    if 0 in (arg.element_count, shape.element_count):
        starts = zip(shapes, reduce.operands[count:], strict=True)
        values = [make.broadcast(reduce, s, v) for s, v in starts]
    elif shape.element_count == arg.element_count and (
        not c.options.layout_sensitive or reshape_is_bitcast(arg.shape, shape)
    ):
        arrays = zip(shapes, reduce.operands[:count], strict=True)
        values = [make.reshape(reduce, s, v) for s, v in arrays]
    if values:
        return c.become(reduce, make.result_of, values)
    if c.options.layout_sensitive or reduce.is_tuple:
        return False
    rewrites = (
        _of_negate,
        _of_transpose,
        _of_reduce,
        _of_reshape,
        _of_concatenate,
        _as_element_of_other,
        _of_broadcast,
    )
    return any(rewrite(c, reduce) for rewrite in rewrites)


def _function(reduce: Instruction, opcode: str) -> bool:
    return is_of_parameters(reduce.to_apply, opcode)


def _of_negate(c: Context, reduce: Instruction) -> bool:
    arg, init = reduce.operands
    if not is_floating(reduce) or arg.opcode != "negate":
        return False
    if not is_scalar_zero(init) or not _function(reduce, "add"):
        return False
    reduce.replace_operand(0, arg.operand)
    replace_users(list(reduce.users), reduce, make.unary(arg, "negate", reduce))
    c.changed = True
    return True


def _of_transpose(c: Context, reduce: Instruction) -> bool:
    arg, init = reduce.operands
    if not arg.is_transpose:
        return False
    free = (
        c.options.unconditional_reduce_of_transpose
        or reduce.rank < 2
        or arg.user_count == 1
        or all(u.is_reduce for u in arg.users)
    )
    if not free:
        return False
    dimensions = [arg.dimensions[d] for d in reduce.dimensions]
    new = make.reduce(reduce, arg.operand, init, dimensions, reduce.to_apply)
    left = [d for d in arg.dimensions if d not in dimensions]
    if not is_sorted(left):
        order = [d - sum(reduced < d for reduced in dimensions) for d in left]
        new = make.transpose(new, new, order)
    return c.replace(reduce, new)


def _of_reduce(c: Context, reduce: Instruction) -> bool:
    arg, init = reduce.operands
    if not arg.is_reduce or arg.is_tuple:
        return False
    if not _identical(init, arg.second):
        return False
    if not equivalent(reduce.to_apply, arg.to_apply):
        return False
    inner, outer = sorted(arg.dimensions), sorted(reduce.dimensions)
    for d in inner:
        outer = [k + (k >= d) for k in outer]
    both = sorted([*inner, *outer])
    return c.become(reduce, make.reduce, arg.operand, init, both, reduce.to_apply)


def _identical(a: Instruction, b: Instruction) -> bool:
    if a is b:
        return True
    keys = Keys()
    if a.operands != b.operands or a.payload != b.payload:
        return False
    if a.is_parameter:
        return False
    return keys.instruction(a) == keys.instruction(b)


def _of_reshape(c: Context, reduce: Instruction) -> bool:
    arg, init = reduce.operands
    if not arg.is_reshape:
        return False
    source, function = arg.operand, reduce.to_apply
    back = {b: a for a, b in unmodified_dimensions(source.shape, arg.shape)}
    remaining = others(arg.rank, reduce.dimensions)
    if all(d in back for d in remaining):
        dimensions = others(source.rank, {back[d] for d in remaining})
        return c.become(reduce, make.reduce, source, init, dimensions, function)
    once = arg.user_count == 1 or c.options.unconditional_reduce_of_transpose
    if once and all(d in back for d in reduce.dimensions):
        new = make.reduce(reduce, source, init, [back[d] for d in reduce.dimensions], function)
        return c.replace(reduce, make.reshape(new, reduce.shape, new))
    return False


def _of_concatenate(c: Context, reduce: Instruction) -> bool:
    arg, init = reduce.operands
    if not arg.is_concatenate or arg.dimension not in reduce.dimensions:
        return False
    first = arg.operand.shape.key_ignoring_layout
    same_shape = all(o.shape.key_ignoring_layout == first for o in arg.operands)
    if not c.options.reduce_of_concatenate:
        return False
    if not (c.options.unconditional_reduce_of_concatenate or same_shape or not reduce.sizes):
        return False
    function = reduce.to_apply
    total: Instruction | None = None
    for operand in arg.operands:
        part = make.reduce(reduce, operand, init, reduce.dimensions, function)
        if total is not None:
            every = range(reduce.rank)
            operands = [total, part]
            part = make.add(reduce, "map", reduce.shape, operands, called=function, dimensions=every)
        total = part
    assert total is not None
    return c.replace(reduce, total)


def _as_element_of_other(c: Context, reduce: Instruction) -> bool:
    """The greatest or least element, where another reduction of the same array finds it with its index."""
    arg, init = reduce.operands
    start = scalar_of(init)
    element_type = init.element_type
    for opcode, neutral in zip(("maximum", "minimum"), bounds(element_type), strict=True):
        if start is None or start != neutral or not _function(reduce, opcode):
            continue
        for user in arg.users:
            if user is reduce or user.operand is not arg or user.dimensions != reduce.dimensions:
                continue
            if is_argument_of_extreme(user, greatest=opcode == "maximum"):
                return c.become(reduce, make.get_tuple_element, user, 0)
    return False


def _of_broadcast(c: Context, reduce: Instruction) -> bool:
    arg, init = reduce.operands
    if not arg.is_broadcast:
        return False
    source, function = arg.operand, reduce.to_apply
    idempotent = next((op for op in ("maximum", "minimum", "and", "or") if _function(reduce, op)), None)
    if idempotent and not source.sizes and len(reduce.dimensions) == arg.rank:
        return c.binary(reduce, idempotent, source, init)
    dimensions = list(arg.dimensions)
    if c.release.reduces_before_broadcasts and all(d in dimensions for d in reduce.dimensions):
        inner = [dimensions.index(d) for d in reduce.dimensions]
        new = make.reduce(reduce, source, init, inner, function)
        left = [
            d - sum(k < d for k in reduce.dimensions) for k_, d in enumerate(dimensions) if k_ not in inner
        ]
        return c.broadcast(reduce, new, left)
    if not _function(reduce, "add") or any(d in dimensions for d in reduce.dimensions):
        return False
    times = math.prod(arg.sizes[d] for d in reduce.dimensions)
    product = make.binary(source, "multiply", source, make.scalar_like(source, times))
    start = make.broadcast(init, product.shape, init)
    total = make.binary(product, "add", start, product)
    left = [d - sum(k < d for k in reduce.dimensions) for d in dimensions]
    return c.broadcast(reduce, total, left)


def handle_reduce_window(c: Context, x: Instruction) -> bool:
    if x.is_tuple or x.operand_count != 2:
        return False
    operand, init = x.operands
    window: Window = x.attributes["window"]
    if 0 in (operand.element_count, x.element_count):
        return c.broadcast(x, init)
    if not operand.sizes:
        return c.replace(x, operand)
    return _elementwise(c, x, window) or _as_reduce(c, x, window) or _with_padded_operand(c, x, window)


def _elementwise(c: Context, x: Instruction, window: Window) -> bool:
    operand, init = x.operands
    trivial = all(
        w.size == w.stride == w.window_dilation == w.base_dilation == 1 and not w.window_reversal
        for w in window
    )
    function = x.to_apply
    opcode = next((op for op in ("add", "minimum", "maximum") if is_of_parameters(function, op)), None)
    if not trivial or opcode is None:
        return False
    new = make.binary(operand, opcode, operand, make.broadcast(init, operand.shape, init))
    if any(w.padding_low > 0 or w.padding_high > 0 for w in window):
        config = PaddingConfig(PaddingDimension(w.padding_low, w.padding_high) for w in window)
        new = make.pad(new, array(x.element_type, x.sizes), new, init, config)
    return c.replace(x, new)


def _as_reduce(c: Context, x: Instruction, window: Window) -> bool:
    plain = all(
        w.stride == w.window_dilation == w.base_dilation == 1 and not w.padding_low and not w.padding_high
        for w in window
    )
    reduced = [d for d, w in enumerate(window) if w.size != 1]
    if not plain or not reduced or any(x.sizes[d] != 1 for d in reduced):
        return False
    new = make.reduce(x, x.operand, x.second, reduced, x.to_apply)
    return c.become(x, make.reshape, x.shape, new)


def _with_padded_operand(c: Context, x: Instruction, window: Window) -> bool:
    """A pad, also a converted one, becomes the window's."""
    operand, init = x.operands
    pad = operand.past("convert")
    if pad.opcode != "pad":
        return False
    source, value = pad.operands
    config: PaddingConfig = pad.attributes["padding"]
    wide = [d for d, w in enumerate(window) if w != WindowDimension(1)]
    if pad is not operand and len(wide) == 1:  # a scan is recognized with a short pad
        p = config[wide[0]]
        if p.low + p.high < 0.1 * operand.sizes[wide[0]]:
            return False
    if any(p.interior for p in config) and any(w.base_dilation != 1 for w in window):
        return False
    if value is not init and (scalar_of(value) is None or scalar_of(value) != scalar_of(init)):
        return False
    if pad is not operand:
        source = make.convert(x, source, operand.element_type)
    grown = [
        replace(
            w,
            padding_low=w.padding_low + w.base_dilation * p.low,
            padding_high=w.padding_high + w.base_dilation * p.high,
            base_dilation=w.base_dilation + p.interior,
        )
        for p, w in zip(config, window, strict=True)
    ]
    return change_window(c, x, [source, init], grown)
