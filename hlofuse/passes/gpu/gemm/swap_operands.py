"""Puts the operand that is computed, or the longer one, on the left of a fused product
(`xla/backends/gpu/transforms/gemm_fusion_swap_operands.cc`)."""

from __future__ import annotations

import math
from dataclasses import replace

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Layout
from hlofuse.passes.base import Pass
from hlofuse.passes.common.dots import DotDimensions, dot_like
from hlofuse.passes.common.make import added
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
