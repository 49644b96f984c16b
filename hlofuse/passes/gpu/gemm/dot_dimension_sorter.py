"""Contracting dimensions in order (`xla/backends/gpu/transforms/dot_dimension_sorter.cc`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.dots import DotDimensions, made_dot
from hlofuse.passes.common.rewriting import expand_each, replaced
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class DotDimensionSorter(Pass):
    """`dot_dimension_sorter`: where that does not put the other operand's out of order."""

    name: ClassVar[str] = "dot_dimension_sorter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [
            x
            for computation in module.non_fusion_computations()
            for x in computation
            if x.opcode == "dot" and _is_unsorted(x)
        ]
        return expand_each(found, _sort, recorder)


def _is_unsorted(dot: Instruction) -> bool:
    if any(list(o.shape.minor_to_major) != list(range(o.shape.rank - 1, -1, -1)) for o in dot.operands):
        return False
    dims = DotDimensions.of(dot)
    sides = (dims.lhs_contracting, dims.rhs_contracting)
    (left, left_unsorted), (right, right_unsorted) = (
        (_are_neighbours(s), list(s) != sorted(s)) for s in sides
    )
    if not sides[0]:
        return False
    return (
        (left and left_unsorted and not right)
        or (right and right_unsorted and not left)
        or (left and left_unsorted and right and right_unsorted)
    )


def _are_neighbours(dimensions: Sequence[int]) -> bool:
    return bool(dimensions) and max(dimensions) - min(dimensions) == len(dimensions) - 1


def _sort(dot: Instruction) -> None:
    dims = DotDimensions.of(dot)
    key = dims.lhs_contracting if _are_neighbours(dims.lhs_contracting) else dims.rhs_contracting
    permutation = [d - min(key) for d in key]
    left, right = (tuple(s[k] for k in permutation) for s in (dims.lhs_contracting, dims.rhs_contracting))
    new = replace(dims, lhs_contracting=left, rhs_contracting=right)
    replaced(dot, made_dot(dot, dot.shape, dot.operands[0], dot.operands[1], new))
