"""Passes on products before and after GEMM fusion: long ones are summed in parts, those with a vector are no
products, and the operand that is computed, or the longer one, goes to the left of a fused one."""

import math
from typing import NamedTuple

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Dims, Instruction, Ints, Module, Shape, replace, values
from hlofuse.passes.base import Explained, Pass, VisitPass, any_change, attempt, replaced
from hlofuse.passes.common.dots import DotDimensions, dot_like, free_dimensions, free_sizes
from hlofuse.passes.common.make import (
    add,
    added,
    binary,
    broadcast,
    convert,
    reduce,
    reducer,
    transpose,
    zero,
)
from hlofuse.passes.common.shapes import array, inserted, permute, permuted, with_layout
from hlofuse.passes.gpu.layout_assignment import is_tiny
from hlofuse.rules.rewrites import SPLIT_K, STRENGTH_REDUCED
from hlofuse.trace import Recorder
from .propagation import can_handle_gemm

_TILE_ELEMENTS = 128
_COUNTS = [1 << k for k in range(12)]
_ALIGNMENT = 128  # bits


class _Weights(NamedTuple):
    compute: float
    memory: float
    reduction_memory: float
    reduction_launch: float


class SplitkRewriter(VisitPass):
    """`splitk-rewriter`: a dimension `k` becomes a batch of parts, summed by a reduction after it."""

    name = "splitk-rewriter"
    opcodes = ("dot",)
    explained = Explained(SPLIT_K)
    device: DeviceDescription

    def handle(self, dot: Instruction) -> bool:
        dims = DotDimensions.of(dot)
        if len(dims.lhs_contracting) != 1 or len(dims.rhs_contracting) != 1:
            return False
        if any(o.element_type == "s32" for o in dot.operands):
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
    def of(cls, dot: Instruction) -> "_Sizes":
        """`GetDotDimensions`."""
        dims = DotDimensions.of(dot)
        left = dot.operand.shape
        m, n = map(math.prod, free_sizes(dot))
        return cls(
            b=math.prod(left.dimensions[d] for d in dims.lhs_batch),
            m=m,
            n=n,
            k=math.prod(left.dimensions[d] for d in dims.lhs_contracting),
            lhs_bits=_source_bits(dot.operand),
            rhs_bits=_source_bits(dot.second),
            sum_bits=Shape(sum_type(dot)).bit_width,
            result_bits=dot.shape.bit_width,
            flops=_FLOPS.get(dot.raw("algorithm") or "", 2),
        )


_FLOPS = {
    "dot_bf16_bf16_f32_x3": 12,
    "dot_tf32_tf32_f32_x3": 12,
    "dot_bf16_bf16_f32_x6": 20,
    "dot_bf16_bf16_f32_x9": 28,
}


def _source_bits(operand: Instruction) -> int:
    """Bit width of the operand below unary operations that will be fused."""
    while is_elementwise(operand) and operand.operand_count == 1:
        operand = operand.operand
    return operand.shape.bit_width


def sum_type(dot: Instruction) -> str:
    """`GetGemmAccumulatorType`."""
    result = dot.element_type
    return "f32" if result in ("f16", "bf16") or result.startswith("f8") else result


def _cost(gemm: _Sizes, count: int, device: DeviceDescription) -> float:
    """`EstimateGemmCostAfterSplitK`."""
    weights = _weights(device)
    batch = gemm.b * count
    m_tile, n_tile = min(gemm.m, _TILE_ELEMENTS), min(gemm.n, _TILE_ELEMENTS)
    tiles = float(batch * -(-gemm.m // _TILE_ELEMENTS) * -(-gemm.n // _TILE_ELEMENTS))
    slots = device.core_count * (float(_TILE_ELEMENTS * _TILE_ELEMENTS) / float(m_tile * n_tile))
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
    left = _split_operand(dot.operand, left_k, count, padded)
    right = _split_operand(dot.second, right_k, count, padded)
    place = sum(d < left_k for d in dims.lhs_batch)
    new = DotDimensions(
        lhs_batch=_with_batch(dims.lhs_batch, left_k, place),
        rhs_batch=_with_batch(dims.rhs_batch, right_k, place),
        lhs_contracting=(left_k + 1,),
        rhs_contracting=(right_k + 1,),
    )
    kind = sum_type(dot)
    batch = permute(left.sizes, new.lhs_batch)
    rows = permute(left.sizes, new.free(0, left.rank))
    columns = permute(right.sizes, new.free(1, right.rank))
    product = dot_like(dot, array(kind, (*batch, *rows, *columns)), left, right, new)
    product.attributes = product.attributes.without("sharding", "frontend_attributes", "backend_config")
    start = zero(dot, kind)
    shape = with_layout(kind, dot.sizes, dot.minor_to_major)
    summed = reducer(product, f"{product.name}.reduce_sub_computation", "add", kind)
    total = add(dot, "reduce", shape, [product, start], dimensions=[place], called=summed)
    return convert(dot, total, dot.element_type)


def _with_batch(batch: Dims, k: int, place: int) -> Dims:
    moved = [d if d < k else d + 1 for d in batch]
    moved.insert(place, k)
    return tuple(moved)


def _split_operand(operand: Instruction, k: int, count: int, padded: int) -> Instruction:
    """Padded to a multiple, and `k` viewed as `count` times the rest."""
    size = operand.sizes[k]
    if padded != size:
        filler = zero(operand, operand.element_type)
        sizes = list(operand.sizes)
        sizes[k] = padded
        edges = "x".join(f"0_{padded - size}" if d == k else "0_0" for d in range(len(sizes)))
        shape = replace(operand.shape, dimensions=tuple(sizes))
        operand = added(operand, "pad", shape, [operand, filler], padding=edges)
    sizes = list(operand.sizes)
    sizes[k : k + 1] = [count, padded // count]
    order = []
    for d in operand.minor_to_major:
        order += ([d + 1] if d >= k else []) + ([d] if d <= k else [])
    shape = with_layout(operand.element_type, sizes, order)
    return added(operand, "reshape", shape, [operand])


_MIN_LEFT_ELEMENTS = 64
_MOVES = values("bitcast broadcast constant get-tuple-element parameter reshape transpose")


class GemmFusionSwapOperands(Pass):
    """`gemm-fusion-swap-operands`: a bitcast restores the order of the result's dimensions."""

    name = "gemm-fusion-swap-operands"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computation_post_order():
            fusion = computation.fusion
            if fusion is None or '"__triton_gemm"' not in (fusion.raw("backend_config") or ""):
                continue
            dot = next((i for i in computation if i.is_dot), None)
            if dot is not None and _should_swap(dot):
                dims = DotDimensions.of(dot)
                left, right = dot.operands
                batch = len(dims.lhs_batch)
                of_left, of_right = map(len, free_dimensions(dot))
                start = batch + of_left
                order = (*range(batch), *range(start, start + of_right), *range(batch, start))
                swapped = DotDimensions(
                    dims.rhs_batch, dims.lhs_batch, dims.rhs_contracting, dims.lhs_contracting
                )
                new = dot_like(dot, permuted(dot.shape, order), right, left, swapped)
                new.attributes = new.attributes.without("sharding", "frontend_attributes")
                dot.replace_all_uses_with(add(dot, "bitcast", dot.shape, [new]))
                dot.parent.remove_instruction(dot)
                changed = True
        return changed


def _should_swap(dot: Instruction) -> bool:
    left, right = map(math.prod, free_sizes(dot))
    if left < _MIN_LEFT_ELEMENTS <= right:
        return True
    computes = [_has_code(o) for o in dot.operands]
    return computes == [False, True] and right >= _MIN_LEFT_ELEMENTS


def _has_code(i: Instruction) -> bool:
    """`HasCodeGeneratingInstructions`, along the first operands."""
    while i.operands:
        if i.opcode not in _MOVES:
            return True
        i = i.operand
    return False


_TINY_DOT_ELEMENTS = 10_000_000


class DotStrengthReduction(Pass):
    """`dot-strength-reduction`; products by another algorithm than the usual one are left as they are
    (`xla/backends/gpu/transforms/dot_strength_reduction.cc`)."""

    name = "dot-strength-reduction"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        expand = attempt(lambda dot: replaced(dot, _expand(dot)), recorder, Explained(STRENGTH_REDUCED))
        found = [i for c in module.non_fusion_computations() for i in c.post_order() if i.is_dot]
        return any_change(map(expand, [dot for dot in found if self._matches(dot)]))

    def _matches(self, dot: Instruction) -> bool:
        if dot.operand_count != 2 or "algorithm" in dot.attributes:
            return False
        dims = DotDimensions.of(dot)
        vectors = [not free for free in free_dimensions(dot)]
        types = {dot.element_type, *(o.element_type for o in dot.operands)}
        if not any(vectors) and not (types == {"s32"} and dims.rhs_contracting == (1,)):
            return False
        return all(vectors) or is_tiny(dot, _TINY_DOT_ELEMENTS) or not can_handle_gemm(dot, self.device)


def _expand(dot: Instruction) -> Instruction:
    """`ExpandInstruction`."""
    dims, free, sizes = DotDimensions.of(dot), free_dimensions(dot), free_sizes(dot)
    sides = []
    for k, operand in enumerate(dot.operands):
        side = convert(dot, operand, dot.element_type)
        order = (*dims.batch(k), *free[k], *dims.contracting(k))
        if list(order) != sorted(order):
            side = transpose(dot, side, order)
        before = len(dims.lhs_batch) + (len(free[0]) if k == 0 else 0)
        sides.append(_spread(side, before, sizes[1 - k], dot))
    product = binary(dot, "multiply", sides[0], sides[1])
    return convert(dot, _sum(product, len(dims.lhs_contracting), dot), dot.element_type)


def _spread(x: Instruction, before: int, sizes: Ints, dot: Instruction) -> Instruction:
    """Further dimensions put in (`BroadcastDimensions`)."""
    if not sizes:
        return x
    remaining = [d if d < before else d + len(sizes) for d in range(x.rank)]
    return broadcast(dot, inserted(x.shape, before, sizes), x, remaining)


def _sum(x: Instruction, count: int, dot: Instruction) -> Instruction:
    """Over the last dimensions (`ReduceDimensions`)."""
    if not count:
        return x
    kind = sum_type(dot)
    start = zero(dot, kind)
    body = reducer(dot, "scalar_add_computation", "add", kind, ("scalar_lhs", "scalar_rhs"))
    return reduce(dot, convert(dot, x, kind), start, range(x.rank)[-count:], body)
