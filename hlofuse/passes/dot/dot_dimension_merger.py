"""Makes one batch dimension of several (`xla/hlo/transforms/simplifiers/dot_dimension_merger.cc`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.dots import DotDimensions, made_dot
from hlofuse.passes.common.make import added, reshaped
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import without
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class DotDimensionMerger(Pass):
    """`dot_dimension_merger`: batch dimensions that lie side by side in both operands."""

    name: ClassVar[str] = "dot_dimension_merger"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["dot"], _merge, recorder)


def _merge(dot: Instruction) -> bool:
    dims = DotDimensions.of(dot)
    count = len(dims.lhs_batch)
    left, right = dot.operands
    if count < 2:
        return False
    sides = ((left.shape, dims.lhs_batch), (right.shape, dims.rhs_batch))
    if not all(_side_by_side(shape, batch) for shape, batch in sides):
        return False
    lhs_first, rhs_first = dims.lhs_batch[0], dims.rhs_batch[0]
    merged = DotDimensions(
        lhs_batch=(lhs_first,),
        rhs_batch=(rhs_first,),
        lhs_contracting=_shifted(dims.lhs_contracting, lhs_first, count - 1),
        rhs_contracting=_shifted(dims.rhs_contracting, rhs_first, count - 1),
    )
    new = made_dot(
        dot,
        _merged_shape(dot.shape, 0, count),
        reshaped(left, _merged_shape(left.shape, lhs_first, count)),
        reshaped(right, _merged_shape(right.shape, rhs_first, count)),
        merged,
    )
    return replaced(dot, added(dot, "reshape", dot.shape, [new], like=dot))


def _side_by_side(shape: Shape, batch: Sequence[int]) -> bool:
    """Consecutive and ascending dimensions, neighbours in memory."""
    if list(batch) != list(range(batch[0], batch[0] + len(batch))):
        return False
    place = inverse(shape.minor_to_major)
    places = [place[d] for d in batch]
    return max(places) - min(places) == len(batch) - 1


def _shifted(dimensions: Sequence[int], start: int, shift: int) -> tuple[int, ...]:
    return tuple(d if d < start else d - shift for d in dimensions)


def _merged_shape(shape: Shape, first: int, count: int) -> Shape:
    size = math.prod(shape.dimensions[first : first + count])
    left = without(shape, range(first + 1, first + count))
    sizes = list(left.dimensions)
    sizes[first] = size
    return replace(left, dimensions=tuple(sizes))
