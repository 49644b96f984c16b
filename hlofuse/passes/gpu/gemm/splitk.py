"""Sums long products in parts (`xla/backends/gpu/transforms/splitk_rewriter.cc`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.dots import DotDimensions, dot_like
from hlofuse.passes.common.make import added, numbers, reducer, zero
from hlofuse.passes.common.rewriting import Explained, VisitPass, replaced
from hlofuse.passes.common.shapes import array, relaid
from hlofuse.rules.rewrites import SPLIT_K

_TILE = 128
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_ALIGNMENT = 128
"""Bits."""


class _Weights(NamedTuple):
    compute: float
    memory: float
    reduction_memory: float
    reduction_launch: float


@dataclass(frozen=True)
class SplitkRewriter(VisitPass):
    """`splitk-rewriter`: a dimension `k` becomes a batch of parts, summed by a reduction behind."""

    name = "splitk-rewriter"
    opcodes = ("dot",)
    explained = Explained(SPLIT_K)
    device: DeviceDescription

    def handle(self, dot: Instruction) -> bool:
        dims = DotDimensions.of(dot)
        if len(dims.lhs_contracting) != 1 or len(dims.rhs_contracting) != 1:
            return False
        if any(o.shape.element_type == "s32" for o in dot.operands):
            return False
        costs = [_cost(_Sizes.of(dot), count, self.device) for count in _COUNTS]
        count = _COUNTS[costs.index(min(costs))]
        return count > 1 and replaced(dot, _split_dot(dot, dims, count))


class _Sizes(NamedTuple):
    b: int
    m: int
    n: int
    k: int
    lhs_bits: int
    rhs_bits: int
    sum_bits: int
    result_bits: int
    flops: int

    @classmethod
    def of(cls, dot: Instruction) -> _Sizes:
        """`GetDotDimensions`."""
        dims = DotDimensions.of(dot)
        left, right = (o.shape for o in dot.operands)
        return cls(
            b=math.prod(left.dimensions[d] for d in dims.lhs_batch),
            m=math.prod(left.dimensions[d] for d in dims.free(0, left.rank)),
            n=math.prod(right.dimensions[d] for d in dims.free(1, right.rank)),
            k=math.prod(left.dimensions[d] for d in dims.lhs_contracting),
            lhs_bits=_source_bits(dot.operands[0]),
            rhs_bits=_source_bits(dot.operands[1]),
            sum_bits=Shape(sum_type(dot)).bit_width,
            result_bits=dot.shape.bit_width,
            flops=_FLOPS.get(dot.attributes.raw("algorithm") or "", 2),
        )


_FLOPS = {
    "dot_bf16_bf16_f32_x3": 12,
    "dot_tf32_tf32_f32_x3": 12,
    "dot_bf16_bf16_f32_x6": 20,
    "dot_bf16_bf16_f32_x9": 28,
}


def _source_bits(operand: Instruction) -> int:
    """Of what unary operations in front, which will be fused, read."""
    while is_elementwise(operand) and len(operand.operands) == 1:
        operand = operand.operands[0]
    return operand.shape.bit_width


def sum_type(dot: Instruction) -> str:
    """`GetGemmAccumulatorType`."""
    result = dot.shape.element_type
    return "f32" if result in ("f16", "bf16") or result.startswith("f8") else result


def _cost(gemm: _Sizes, count: int, device: DeviceDescription) -> float:
    """`EstimateGemmCostAfterSplitK`."""
    weights = _weights(device)
    batch = gemm.b * count
    m_tile, n_tile = min(gemm.m, _TILE), min(gemm.n, _TILE)
    tiles = float(batch * -(-gemm.m // _TILE) * -(-gemm.n // _TILE))
    slots = device.core_count * (float(_TILE * _TILE) / float(m_tile * n_tile))
    waves = max(1.0, tiles / slots)
    compute = float(gemm.flops) * m_tile * n_tile * -(-gemm.k // count) * waves * weights.compute
    read = float(gemm.m) * gemm.k * gemm.b * gemm.lhs_bits / 8.0
    read += float(gemm.n) * gemm.k * gemm.b * gemm.rhs_bits / 8.0
    written = float(gemm.m) * gemm.n * batch * (gemm.sum_bits if count > 1 else gemm.result_bits) / 8.0
    cost = max(compute, (read + written) * weights.memory)
    if count == 1:
        return cost
    bytes_written = float(batch) * gemm.m * gemm.n * gemm.sum_bits / 8.0
    bytes_written += float(gemm.b) * gemm.m * gemm.n * gemm.result_bits / 8.0
    return cost + weights.reduction_launch + bytes_written * weights.reduction_memory


def _weights(device: DeviceDescription) -> _Weights:
    major = device.compute_capability[0]
    if major >= 10:
        return _Weights(100.0, 0.0848863, 189.711, 1.21563e08)
    if major >= 9:
        return _Weights(100.0, 0.194136, 193.1384, 4.36e07)
    return _Weights(100.0, 0.0666955, 467.815, 5.65307e07)


def _split_dot(dot: Instruction, dims: DotDimensions, count: int) -> Instruction:
    """`SplitKDimensionOfDot`."""
    sizes = _Sizes.of(dot)
    unit = count * _ALIGNMENT // min(_ALIGNMENT, sizes.lhs_bits, sizes.rhs_bits)
    padded = -(-sizes.k // unit) * unit
    left_k, right_k = dims.lhs_contracting[0], dims.rhs_contracting[0]
    left = _split_operand(dot.operands[0], left_k, count, padded)
    right = _split_operand(dot.operands[1], right_k, count, padded)
    place = sum(d < left_k for d in dims.lhs_batch)
    new = DotDimensions(
        lhs_batch=_with_batch(dims.lhs_batch, left_k, place),
        rhs_batch=_with_batch(dims.rhs_batch, right_k, place),
        lhs_contracting=(left_k + 1,),
        rhs_contracting=(right_k + 1,),
    )
    kind = sum_type(dot)
    batch = [left.shape.dimensions[d] for d in new.lhs_batch]
    free = [left.shape.dimensions[d] for d in new.free(0, left.shape.rank)]
    free += [right.shape.dimensions[d] for d in new.free(1, right.shape.rank)]
    product = dot_like(dot, array(kind, [*batch, *free]), left, right, new)
    product.attributes = product.attributes.without("sharding", "frontend_attributes", "backend_config")
    start = zero(dot, kind)
    shape = relaid(array(kind, dot.shape.dimensions), dot.shape.minor_to_major)
    total = added(
        dot,
        "reduce",
        shape,
        [product, start],
        like=dot,
        dimensions=numbers([place]),
        called=[("to_apply", reducer(product, f"{product.name}.reduce_sub_computation", "add", kind))],
    )
    if kind == dot.shape.element_type:
        return total
    return added(dot, "convert", replace(shape, element_type=dot.shape.element_type), [total], like=dot)


def _with_batch(batch: tuple[int, ...], k: int, place: int) -> tuple[int, ...]:
    moved = [d if d < k else d + 1 for d in batch]
    moved.insert(place, k)
    return tuple(moved)


def _split_operand(operand: Instruction, k: int, count: int, padded: int) -> Instruction:
    """Padded to a multiple, and `k` viewed as `count` times the rest."""
    size = operand.shape.dimensions[k]
    if padded != size:
        filler = zero(operand, operand.shape.element_type)
        sizes = list(operand.shape.dimensions)
        sizes[k] = padded
        edges = "x".join(f"0_{padded - size}" if d == k else "0_0" for d in range(len(sizes)))
        shape = replace(operand.shape, dimensions=tuple(sizes))
        operand = added(operand, "pad", shape, [operand, filler], padding=edges)
    sizes = list(operand.shape.dimensions)
    sizes[k : k + 1] = [count, padded // count]
    order: list[int] = []
    for d in operand.shape.minor_to_major:
        order += ([d + 1] if d >= k else []) + ([d] if d <= k else [])
    shape = relaid(array(operand.shape.element_type, sizes), order)
    return added(operand, "reshape", shape, [operand])
