"""Broadcasts, iotas and constants that are one (`HandleBroadcast`, `HandleIota`, `HandleConstant`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import values_of, word_of
from hlofuse.passes.common.shapes import is_sorted, ones_moved, without_ones


def handle_broadcast(c: Context, broadcast: Instruction) -> None:
    (operand,) = broadcast.operands
    shape, dimensions = broadcast.shape, list(broadcast.dimensions)
    if shape.element_count == operand.shape.element_count:
        if is_sorted(dimensions):
            c.replace(broadcast, make.reshape(broadcast, shape, operand))
            return
        if shape.rank == operand.shape.rank:
            new = make.transpose(broadcast, operand, inverse(broadcast.dimensions), shape)
            c.replace(broadcast, new)
            return
    if operand.opcode == "reshape":
        moved = ones_moved(operand.operands[0].shape, operand.shape)
        if moved is not None and not moved[0]:
            left = [d for k, d in enumerate(dimensions) if k not in moved[1]]
            c.replace(broadcast, make.broadcast(broadcast, shape, operand.operands[0], left))
            return
    if c.options.sink_broadcast and _sink(c, broadcast):
        c.changed = True
        return
    if not operand.shape.dimensions:
        _of_scalar(c, broadcast)
        return
    if operand.opcode == "iota":
        new = make.iota(broadcast, shape, dimensions[int(operand.attributes["iota_dimension"])])
        c.replace(broadcast, new)
        return
    if operand.opcode == "broadcast":
        through = [dimensions[d] for d in operand.dimensions]
        c.replace(broadcast, make.broadcast(broadcast, shape, operand.operands[0], through))
        return
    if c.options.layout_sensitive or not c.options.broadcast_degenerate_dimension:
        return
    if 1 in operand.shape.dimensions:
        small = make.reshaped(operand, without_ones(operand.shape))
        remaining = [d for d, size in zip(dimensions, operand.shape.dimensions, strict=True) if size != 1]
        c.replace(broadcast, make.broadcast(broadcast, shape, small, remaining))


def _sink(c: Context, broadcast: Instruction) -> bool:
    """Elementwise users of nothing but such broadcasts work on the small value
    (`TryToSinkBroadcastAfterElementwiseOps`)."""
    if not broadcast.shape.dimensions:
        return False
    operand = broadcast.operands[0]

    def is_scalar(x: Instruction) -> bool:
        return x.opcode == "broadcast" and not x.operands[0].shape.dimensions

    def is_similar(x: Instruction) -> bool:
        return (
            x.opcode == "broadcast"
            and x.operands[0].shape.key == operand.shape.key
            and x.dimensions == broadcast.dimensions
        )

    sunk = False
    for user in list(broadcast.users):
        if (not user.users and not user.is_root) or user.opcode in ("copy", "fusion"):
            continue
        if not is_elementwise(user) or not all(is_scalar(o) or is_similar(o) for o in user.operands):
            continue
        operands = []
        for o in user.operands:
            inner = o.operands[0]
            if is_scalar(o):
                inner = make.broadcast(o, operand.shape.with_element_type(o.shape.element_type), inner, ())
            operands.append(inner)
        small = make.copy_of(user, operands, operand.shape.with_element_type(user.shape.element_type))
        wide = make.broadcast(broadcast, user.shape, small, broadcast.dimensions)
        user.replace_all_uses_with(wide)
        sunk = True
    return sunk


def _of_scalar(c: Context, broadcast: Instruction) -> None:
    """What only permutes or picks elements of it is another broadcast."""
    for user in broadcast.users:
        if not user.users and not user.is_root:
            continue
        permutes = user.opcode in ("reshape", "reverse", "transpose")
        permutes |= user.opcode == "sort" and not user.shape.is_tuple
        picks = user.opcode in ("slice", "dynamic-slice") and user.operands[0] is broadcast
        if permutes or (picks and user.operands.count(broadcast) == 1):
            c.changed = True
            user.replace_all_uses_with(make.broadcast(user, user.shape, broadcast.operands[0], ()))
            return


def handle_iota(c: Context, iota: Instruction) -> None:
    if iota.shape.dimensions[int(iota.attributes["iota_dimension"])] <= 1:
        c.replace(iota, make.scalar_like(iota, 0))


def handle_constant(c: Context, constant: Instruction) -> None:
    if constant.shape.element_count <= 1:
        return
    values = values_of(constant)
    if values is None:
        return
    literals_ = {word_of(constant.shape.element_type, v) for v in values}
    if len(literals_) == 1 and None not in literals_:
        scalar = make.scalar(constant, constant.shape.element_type, values[0])
        c.replace(constant, make.broadcast(constant, constant.shape, scalar, ()))
        return
    if constant.shape.rank != 1 or constant.shape.element_type == "pred":
        return
    if all(v == k for k, v in enumerate(values)):
        c.replace(constant, make.iota(constant, constant.shape, 0))
        return
    stride = values[1]
    whole = isinstance(stride, int) and values[0] == 0 and stride != 0
    if whole and all(v == k * stride for k, v in enumerate(values)):
        step = make.scalar_like(constant, stride)
        counted = make.iota(constant, constant.shape, 0)
        c.replace(constant, make.binary(constant, "multiply", counted, step))
