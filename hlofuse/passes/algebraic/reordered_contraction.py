"""A product with a constant, of what was transposed ahead of its contraction
(`OptimizeDotOfReorderContractingDims`): the constant is, instead, to be folded."""

from __future__ import annotations

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, made_dot
from hlofuse.passes.common.shapes import array, unmodified_dimensions


def reorder_contraction(c: Context, dot: Instruction) -> bool:
    """dot(reshape(transpose(a)), constant), where the reshape merges what the transpose exchanges."""
    dims = DotDimensions.of(dot)
    sides = (1, 0) if dot.operands[0].opcode == "constant" else (0, 1)
    reshape, constant = (dot.operands[side] for side in sides)
    if len(dims.contracting(0)) != 1 or constant.opcode != "constant" or reshape.opcode != "reshape":
        return False
    (transpose,) = reshape.operands
    merged = _merged(reshape, dims.contracting(sides[0])[0])
    if transpose.opcode != "transpose" or not merged:
        return False
    order, (source,) = transpose.dimensions, transpose.operands
    if any(d != k and k not in merged for k, d in enumerate(order)):
        return False
    place = dims.contracting(sides[1])[0]
    sizes, kind = constant.shape.dimensions, constant.shape.element_type
    ahead, behind, rank = sizes[:place], sizes[place + 1 :], len(sizes) - 1 + len(merged)
    back = inverse(order)
    turned = [back[d] - merged[0] + place for d in merged]
    plain = make.reshape(dot, reshape.shape, source)
    split = array(kind, (*ahead, *(transpose.shape.dimensions[d] for d in merged), *behind))
    values = make.reshape(dot, split, constant)
    split = array(kind, (*ahead, *(source.shape.dimensions[d] for d in merged), *behind))
    permutation = [*range(place), *turned, *range(place + len(merged), rank)]
    values = make.reshape(dot, constant.shape, make.transpose(dot, values, permutation, split))
    operands = (values, plain) if sides[0] else (plain, values)
    return c.replace(dot, made_dot(dot, dot.shape, *operands, dims))


def _merged(reshape: Instruction, summed: int) -> list[int]:
    """The dimensions side by side that the reshape makes one, the one summed over; otherwise none."""
    source = reshape.operands[0].shape
    kept = unmodified_dimensions(source, reshape.shape)
    if len(kept) != reshape.shape.rank - 1 or any(after == summed for _, after in kept):
        return []
    left = sorted(set(range(source.rank)) - {before for before, _ in kept})
    return left if left and left == list(range(left[0], left[0] + len(left))) else []
