"""Slices whose place is computed (`HandleDynamicSlice`, `HandleDynamicUpdateSlice`)."""

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.facts import is_all, is_integral, scalar_constant
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.shapes import (
    array,
    ones_moved,
    permuted,
    unmodified_dimensions,
)


def handle_dynamic_slice(c: Context, x: Instruction) -> bool:
    operand, starts = x.operands[0], x.operands[1:]
    sizes = x.shape.dimensions
    if not sizes or c.same_shape(operand.shape, x.shape):
        return c.replace(x, operand)
    whole = [d for d, s in enumerate(starts) if operand.shape.dimensions[d] == sizes[d] and not _is_zero(s)]
    if whole:
        zero = make.scalar_like(starts[0], 0)
        new_starts = [zero if d in whole else s for d, s in enumerate(starts)]
        return c.replace(x, make.copy_of(x, [operand, *new_starts]))
    if operand.opcode == "broadcast":
        inner = operand.operands[0]
        if operand.dimensions:
            taken = [sizes[d] for d in operand.dimensions]
            inner = make.dynamic_slice(x, inner, [starts[d] for d in operand.dimensions], taken)
        return c.replace(x, make.broadcast(operand, x.shape, inner, operand.dimensions))
    if not c.options.layout_sensitive:
        if operand.opcode == "reshape" and _of_reshape(c, x):
            return True
        if operand.opcode == "transpose":
            order = inverse(operand.dimensions)
            source, taken = operand.operands[0], [sizes[k] for k in order]
            inner = make.dynamic_slice(x, source, [starts[k] for k in order], taken)
            inner.shape = permuted(x.shape, order)
            new = make.transpose(x, inner, operand.dimensions)
            return c.replace(x, new)
    if operand.opcode != "constant" and all(s.opcode == "constant" and is_integral(s) for s in starts):
        return _at_constant_offset(c, x)
    return _of_iota(c, x) or (operand.opcode == "dynamic-slice" and _of_dynamic_slice(c, x))


def _is_zero(x: Instruction) -> bool:
    return x.opcode == "constant" and is_all(x, 0)


def _of_reshape(c: Context, x: Instruction) -> bool:
    reshape = x.operands[0]
    source = reshape.operands[0]
    if ones_moved(source.shape, reshape.shape) is None:
        return False
    zero = make.scalar_like(x.operands[1], 0)
    starts, sizes = [zero] * source.shape.rank, [1] * source.shape.rank
    for a, b in unmodified_dimensions(source.shape, reshape.shape):
        if source.shape.dimensions[a] != 1:
            starts[a], sizes[a] = x.operands[1 + b], x.shape.dimensions[b]
    inner = make.dynamic_slice(x, source, starts, sizes)
    return c.replace(x, make.reshape(x, x.shape, inner))


def _at_constant_offset(c: Context, x: Instruction) -> bool:
    operand = x.operands[0]
    starts = []
    for d, s in enumerate(x.operands[1:]):
        value = scalar_of(s)
        if value is None or value < 0:
            return False
        starts.append(min(operand.shape.dimensions[d] - x.shape.dimensions[d], int(value)))
    limits = [s + n for s, n in zip(starts, x.shape.dimensions, strict=True)]
    return c.replace(x, make.slice_of(x, operand, starts, limits))


def _of_iota(c: Context, x: Instruction) -> bool:
    """One number of a counter, perhaps scaled, is the place it is read from."""
    operand, index = x.operands[0], x.operands[1]
    element_type, index_type = x.shape.element_type, index.shape.element_type
    if operand.shape.rank != 1 or x.shape.dimensions != (1,) or element_type not in ("s32", "u32"):
        return False
    factor = None
    if operand.opcode == "multiply":
        scale = operand.operands[1]
        if scale.opcode == "broadcast" and not scale.operands[0].shape.dimensions:
            factor, operand = scale.operands[0], operand.operands[0]
    if operand.opcode != "iota" or index_type not in ("s32", "u32"):
        return False
    low = make.scalar_like(index, 0)
    high = make.scalar_like(index, operand.shape.dimensions[0] - 1)
    result = make.add(x, "clamp", index.shape, [low, index, high])
    result = make.convert(x, result, element_type)
    if factor is not None:
        result = make.binary(x, "multiply", result, factor)
    return c.replace(x, make.reshape(x, x.shape, result))


def _of_dynamic_slice(c: Context, x: Instruction) -> bool:
    inner = x.operands[0]
    source = inner.operands[0]
    x.replace_operand(0, source)
    for k in range(1, len(x.operands)):
        bound = source.shape.dimensions[k - 1] - x.shape.dimensions[k - 1]
        x.replace_operand(k, _combined(x.operands[k], inner.operands[k], bound, inner))
    c.changed = True
    return True


def _combined(index: Instruction, inner: Instruction, bound: int, at: Instruction) -> Instruction:
    """The outer index and the inner one, which does not go beyond its bounds."""
    low, high = make.scalar_like(inner, 0), make.scalar_like(inner, bound)
    clamped = make.add(inner, "clamp", inner.shape, [low, inner, high])
    return make.binary(at, "add", index, make.convert(inner, clamped, index.shape.element_type))


def handle_dynamic_update_slice(c: Context, x: Instruction) -> bool:
    base, update, starts = x.operands[0], x.operands[1], x.operands[2:]
    if base.opcode == "broadcast" and not base.operands[0].shape.dimensions and _as_pad(c, x):
        return True
    if c.same_shape(x.shape, update.shape):
        return c.replace(x, update)
    whole = [
        d
        for d, s in enumerate(starts)
        if update.shape.dimensions[d] == x.shape.dimensions[d] and not _is_zero(s)
    ]
    if whole:
        zero = make.scalar_like(starts[0], 0)
        new_starts = [zero if d in whole else s for d, s in enumerate(starts)]
        return c.replace(x, make.copy_of(x, [base, update, *new_starts]))
    if update.shape.element_count == 0:
        return c.replace(x, base)
    if update.opcode != "dynamic-update-slice":
        return False
    read = update.operands[0]
    if read.opcode != "dynamic-slice" or read.operands[0] is not base or read.operands[1:] != starts:
        return False
    part = update.operands[1]
    x.replace_operand(1, part)
    for k in range(2, len(x.operands)):
        bound = update.shape.dimensions[k - 2] - part.shape.dimensions[k - 2]
        x.replace_operand(k, _combined(x.operands[k], update.operands[k], bound, update))
    c.changed = True
    return True


def _as_pad(c: Context, x: Instruction) -> bool:
    """An update at a known place of an array of one value is a pad."""
    base, update, starts = x.operands[0], x.operands[1], x.operands[2:]
    if any(not scalar_constant(s) for s in starts) or len(starts) != base.shape.rank:
        return False
    padding = []
    for d, s in enumerate(starts):
        value = scalar_of(s)
        if value is None:
            return False
        room = base.shape.dimensions[d] - update.shape.dimensions[d]
        low = min(room, max(0, int(value)))
        padding.append(PaddingDimension(low, room - low))
    shape = array(base.shape.element_type, base.shape.dimensions)
    return c.replace(x, make.pad(x, shape, update, base.operands[0], PaddingConfig(tuple(padding))))
