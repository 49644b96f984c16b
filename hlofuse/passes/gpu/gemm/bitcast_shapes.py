"""Exchanging a bitcast with a broadcast or transpose (`xla/backends/gpu/transforms/bitcast_utils.cc`).

Each answer is the new shape in between and the new `dimensions`; None where the bitcast mixes what the
operation tells apart. Element types are the caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.shapes import common_factors, with_layout

Exchange = tuple[Shape, tuple[int, ...]]


def in_memory(shape: Shape) -> list[int]:
    """Sizes from minor to major."""
    return [shape.dimensions[d] for d in shape.minor_to_major]


def bitcast_of_broadcast(broadcast: Instruction, result: Shape) -> Exchange | None:
    """bitcast(broadcast(x)) as broadcast(bitcast(x)): the inner shape and the broadcast's dimensions."""
    shape = broadcast.shape
    from_operand = frozenset(broadcast.dimensions)
    sizes = in_memory(shape)
    dims: list[int] = []
    factors = common_factors(in_memory(result), sizes)
    for (start, first), (end, last) in pairwise(factors):
        which = {shape.minor_to_major[k] in from_operand for k in range(first, last) if sizes[k] != 1}
        if True not in which:
            continue
        if False in which:
            return None
        dims += result.minor_to_major[start:end]
    dims.sort()
    order = [dims.index(d) for d in result.minor_to_major if d in dims]
    inner = with_layout(shape.element_type, [result.dimensions[d] for d in dims], order)
    return inner, tuple(dims)


def broadcast_of_bitcast(broadcast: Instruction, operand: Shape) -> Exchange | None:
    """broadcast(bitcast(x)) as bitcast(broadcast(x)), `operand` being the shape of x."""
    bitcast, result = broadcast.operands[0].shape, broadcast.shape
    place = inverse(result.minor_to_major)
    ranges: dict[int, tuple[int, int]] = {}
    factors = common_factors(in_memory(bitcast), in_memory(operand))
    for (first, start), (last, end) in pairwise(factors):
        indices = []
        for k in range(first, last):
            d = broadcast.dimensions[bitcast.minor_to_major[k]]
            ranges[d] = (start, end)
            start = end
            indices.append(place[d])
        if indices and (indices[-1] - indices[0] >= len(indices) or indices != sorted(indices)):
            return None
    sizes = [0] * (operand.rank + result.rank - bitcast.rank)
    dims = list(range(operand.rank))
    order: list[int] = []
    new = operand.rank
    for d in result.minor_to_major:
        if d in ranges:
            for k in range(*ranges[d]):
                source = operand.minor_to_major[k]
                sizes[source] = operand.dimensions[source]
                order.append(source)
        else:
            sizes[new] = result.dimensions[d]
            order.append(new)
            new += 1
    return with_layout(operand.element_type, sizes, order), tuple(dims)


def bitcast_of_transpose(transpose: Instruction, result: Shape) -> Exchange | None:
    """bitcast(transpose(x)) as transpose(bitcast(x))."""
    operand = transpose.operands[0].shape
    found = _through_transpose(transpose, result, transpose.shape, operand, transpose.dimensions)
    return (found[0], inverse(found[1])) if found is not None else None


def transpose_of_bitcast(transpose: Instruction, operand: Shape) -> Exchange | None:
    """transpose(bitcast(x)) as bitcast(transpose(x)), `operand` being the shape of x."""
    back = inverse(transpose.dimensions)
    return _through_transpose(transpose, operand, transpose.operands[0].shape, transpose.shape, back)


def _through_transpose(
    transpose: Instruction, result: Shape, outer: Shape, inner: Shape, dims: Sequence[int]
) -> Exchange | None:
    """`CalculateBitcastOfTransposeImpl`; the dimensions are the inverse permutation."""
    if transpose.shape.minor_to_major != transpose.operands[0].shape.minor_to_major:
        return None
    ranges = [(0, 0)] * inner.rank
    place = inverse(inner.minor_to_major)
    sizes = in_memory(result)
    factors = _merged(common_factors(sizes, in_memory(outer)))
    for (start, first), (end, last) in pairwise(factors):
        product = 1
        for size in sizes[start:end]:
            product *= size
        indices = []
        for k in range(first, last):
            d = outer.minor_to_major[k]
            index = place[dims[d]]
            if outer.dimensions[d] == 1 and product > 1:
                ranges[index] = (start, start)
                continue
            ranges[index] = (start, end)
            start = end
            indices.append(index)
        if indices and (indices[-1] - indices[0] >= len(indices) or indices != sorted(indices)):
            return None
    new_sizes, new_dims, at = [0] * result.rank, [0] * result.rank, 0
    for span in ranges:
        for k in range(*span):
            new, old = result.minor_to_major[at], result.minor_to_major[k]
            at += 1
            new_sizes[new] = result.dimensions[old]
            new_dims[new] = old
    return replace(result, dimensions=tuple(new_sizes)), tuple(new_dims)


def _merged(bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """`CommonFactorsMergingTrivialRanges`."""
    bounds = list(bounds)
    k = 0
    while k + 1 < len(bounds) and len(bounds) > 2:
        (a, b), (a_end, b_end) = bounds[k], bounds[k + 1]
        if a != a_end and b != b_end:
            k += 1
        elif k + 2 == len(bounds):
            del bounds[k]
        else:
            del bounds[k + 1]
    return bounds
