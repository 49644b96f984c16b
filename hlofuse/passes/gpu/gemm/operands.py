"""Puts the operand that is computed, or the longer one, on the left of a fused product
(`xla/backends/gpu/transforms/gemm_fusion_swap_operands.cc`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Layout
from hlofuse.passes.base import Pass, any_change
from hlofuse.passes.common.dots import DotDimensions, dot_like
from hlofuse.passes.common.make import added, numbers, reducer, zero
from hlofuse.passes.common.rewriting import Explained, attempt, replaced
from hlofuse.passes.common.shapes import inserted, permuted, without
from hlofuse.passes.gpu.gemm.propagation import can_handle_gemm
from hlofuse.passes.gpu.gemm.splitk import sum_type
from hlofuse.passes.gpu.layout_assignment import is_tiny
from hlofuse.rules.rewrites import STRENGTH_REDUCED
from hlofuse.trace import Recorder

_SMALLEST_LEFT = 64
_MOVES = frozenset("bitcast broadcast constant get-tuple-element parameter reshape transpose".split())


class GemmFusionSwapOperands(Pass):
    """`gemm-fusion-swap-operands`: a bitcast restores the order of the result's dimensions."""

    name = "gemm-fusion-swap-operands"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computation_post_order():
            fusion = computation.fusion
            if fusion is None or '"__triton_gemm"' not in (fusion.attributes.raw("backend_config") or ""):
                continue
            dot = next((i for i in computation if i.opcode == "dot"), None)
            if dot is not None and _should_swap(dot):
                _swap(dot)
                changed = True
        return changed


def _should_swap(dot: Instruction) -> bool:
    dims = DotDimensions.of(dot)
    left, right = (
        math.prod(o.shape.dimensions[d] for d in dims.free(number, o.shape.rank))
        for number, o in enumerate(dot.operands)
    )
    if left < _SMALLEST_LEFT <= right:
        return True
    computes = [_has_code(o) for o in dot.operands]
    return computes == [False, True] and right >= _SMALLEST_LEFT


def _has_code(i: Instruction) -> bool:
    """`HasCodeGeneratingInstructions`, along the first operands."""
    while i.operands:
        if i.opcode not in _MOVES:
            return True
        i = i.operands[0]
    return False


def _swap(dot: Instruction) -> None:
    dims = DotDimensions.of(dot)
    left, right = dot.operands
    batch = len(dims.lhs_batch)
    of_left, of_right = len(dims.free(0, left.shape.rank)), len(dims.free(1, right.shape.rank))
    start = batch + of_left
    order = (*range(batch), *range(start, start + of_right), *range(batch, start))
    place = inverse(order)
    shape = replace(
        dot.shape,
        dimensions=tuple(dot.shape.dimensions[d] for d in order),
        layout=Layout(tuple(place[d] for d in dot.shape.minor_to_major)),
    )
    swapped = DotDimensions(dims.rhs_batch, dims.lhs_batch, dims.rhs_contracting, dims.lhs_contracting)
    new = dot_like(dot, shape, right, left, swapped)
    new.attributes = new.attributes.without("sharding", "frontend_attributes")
    back = added(dot, "bitcast", dot.shape, [new], like=dot)
    dot.replace_all_uses_with(back)
    assert dot.computation is not None
    dot.computation.remove_instruction(dot)


_SMALL = 10_000_000


@dataclass(frozen=True)
class DotStrengthReduction(Pass):
    """`dot-strength-reduction`; products by another algorithm than the usual one are left as they are
    (`xla/backends/gpu/transforms/dot_strength_reduction.cc`)."""

    name = "dot-strength-reduction"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        expand = attempt(lambda dot: replaced(dot, _expanded(dot)), recorder, Explained(STRENGTH_REDUCED))
        found = [i for c in module.non_fusion_computations() for i in c.post_order() if i.opcode == "dot"]
        return any_change(map(expand, [dot for dot in found if self._matches(dot)]))

    def _matches(self, dot: Instruction) -> bool:
        if len(dot.operands) != 2 or "algorithm" in dot.attributes:
            return False
        dims = DotDimensions.of(dot)
        vectors = [not dims.free(k, o.shape.rank) for k, o in enumerate(dot.operands)]
        types = {dot.shape.element_type, *(o.shape.element_type for o in dot.operands)}
        if not any(vectors) and not (types == {"s32"} and dims.rhs_contracting == (1,)):
            return False
        return all(vectors) or is_tiny(dot, _SMALL) or not can_handle_gemm(dot, self.device)


def _expanded(dot: Instruction) -> Instruction:
    """`ExpandInstruction`."""
    dims = DotDimensions.of(dot)
    free = [dims.free(k, o.shape.rank) for k, o in enumerate(dot.operands)]
    sizes = [[o.shape.dimensions[d] for d in f] for o, f in zip(dot.operands, free, strict=True)]
    sides = []
    for k, operand in enumerate(dot.operands):
        side = _converted(operand, dot.shape.element_type, dot)
        order = (*dims.batch(k), *free[k], *dims.contracting(k))
        if list(order) != sorted(order):
            shape = permuted(side.shape, order)
            side = added(dot, "transpose", shape, [side], like=dot, dimensions=numbers(order))
        before = len(dims.lhs_batch) + (len(free[0]) if k == 0 else 0)
        sides.append(_spread(side, before, sizes[1 - k], dot))
    product = added(dot, "multiply", sides[0].shape, sides, like=dot)
    return _converted(_summed(product, len(dims.lhs_contracting), dot), dot.shape.element_type, dot)


def _converted(x: Instruction, element_type: str, dot: Instruction) -> Instruction:
    if x.shape.element_type == element_type:
        return x
    return added(dot, "convert", x.shape.with_element_type(element_type), [x], like=dot)


def _spread(x: Instruction, before: int, sizes: Sequence[int], dot: Instruction) -> Instruction:
    """Further dimensions put in (`BroadcastDimensions`)."""
    if not sizes:
        return x
    remaining = [d if d < before else d + len(sizes) for d in range(x.shape.rank)]
    shape = inserted(x.shape, before, sizes)
    return added(dot, "broadcast", shape, [x], like=dot, dimensions=numbers(remaining))


def _summed(x: Instruction, count: int, dot: Instruction) -> Instruction:
    """Over the last dimensions (`ReduceDimensions`)."""
    if not count:
        return x
    kind = sum_type(dot)
    rank = x.shape.rank
    start = zero(dot, kind)
    body = reducer(dot, "scalar_add_computation", "add", kind, ("scalar_lhs", "scalar_rhs"))
    return added(
        dot,
        "reduce",
        without(x.shape, range(rank - count, rank)).with_element_type(kind),
        [_converted(x, kind, dot), start],
        like=dot,
        dimensions=numbers(range(rank - count, rank)),
        called=[("to_apply", body)],
    )
