"""Transposes and reshapes that end where they began (`TryRemovingBitcastOrReshapeTransposeChain`)."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import is_identity, ones_moved, permute


def remove_chain(c: Context, last: Instruction) -> bool:
    """Every reshape, or bitcast that is one, moves a single dimension of size 1."""
    if last.opcode == "transpose":
        if is_identity(last.dimensions):
            return False
        permutation = _effective(last)
    elif _moves_a_one(last):
        permutation = list(range(last.shape.true_rank))
    else:
        return False
    first: Instruction | None = None
    current = last.operands[0]
    while current.opcode in ("reshape", "transpose", "bitcast"):
        if current.opcode != "transpose":
            if not _moves_a_one(current):
                return False
        elif is_identity(current.dimensions):
            return False
        else:
            step = _effective(current)
            if len(step) != len(permutation):
                return False
            permutation = permute(step, permutation)
        first, current = current, current.operands[0]
    if first is None or not is_identity(permutation):
        return False
    source = first.operands[0]
    if c.options.layout_sensitive and reshape_is_bitcast(source.shape, last.shape):
        same = source.shape.key == last.shape.key
        return c.replace(last, source if same else make.add(last, "bitcast", last.shape, [source]))
    return c.same_shape(last.shape, source.shape) and c.replace(last, source)


def _ones(shape: Shape) -> int:
    return shape.dimensions.count(1)


def _moves_a_one(x: Instruction) -> bool:
    if x.opcode not in ("reshape", "bitcast"):
        return False
    if x.opcode == "bitcast" and not reshape_is_bitcast(x.operands[0].shape, x.shape):
        return False
    if _ones(x.shape) > 1 or _ones(x.operands[0].shape) > 1:
        return False
    return ones_moved(x.operands[0].shape, x.shape) is not None


def _effective(transpose: Instruction) -> Sequence[int]:
    """The permutation without the one dimension of size 1, if there is one."""
    sizes = transpose.operands[0].shape.dimensions
    if sizes.count(1) != 1:
        return transpose.dimensions
    one = sizes.index(1)
    return [p - (p > one) for p in transpose.dimensions if p != one]
