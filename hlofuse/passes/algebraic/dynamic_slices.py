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
    return operand.opcode == "dynamic-slice" and _of_dynamic_slice(c, x)


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
    return update.shape.element_count == 0 and c.replace(x, base)


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
