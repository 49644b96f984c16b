"""One contracting and one free dimension an operand (`xla/hlo/transforms/dot_dimension_normalizer.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.dots import made_dot
from hlofuse.passes.common.make import added
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import array
from hlofuse.passes.dot.dot_operand import (
    CONTRACTING,
    FREE,
    DotOperand,
    dimensions_of,
    product_sizes,
)
from hlofuse.passes.dot.shape_tracker import ShapeTracker
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class DotDimensionNormalizer(Pass):
    """`dot_dimension_normalizer`: `free` with the non-contracting dimensions, too."""

    name: ClassVar[str] = "dot_dimension_normalizer"
    free: bool = True

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["dot"], self._normalize, recorder)

    def _normalize(self, dot: Instruction) -> bool:
        sides = [DotOperand.of(dot, side) for side in (0, 1)]
        many = [side for side in sides if self.free and len(side.groups[FREE]) > 1]
        if len(sides[0].groups[CONTRACTING]) < 2 and not many:
            return False
        lhs, left = self._operand(sides[0], dot.operands[0])
        rhs, right = self._operand(sides[1], dot.operands[1])
        shape = array(dot.shape.element_type, product_sizes(lhs, rhs))
        new = made_dot(dot, shape, left, right, dimensions_of(lhs, rhs))
        if shape.dimensions != dot.shape.dimensions:
            new = added(dot, "reshape", dot.shape, [new], like=dot)
        return replaced(dot, new)

    def _operand(self, dims: DotOperand, operand: Instruction) -> tuple[DotOperand, Instruction]:
        head = operand
        while head.opcode in ("transpose", "reshape"):
            head = head.operands[0]
        tracker = ShapeTracker.between(head, operand)
        for category in (CONTRACTING, FREE):
            if category == FREE and not (self.free and len(dims.groups[FREE]) > 1):
                continue
            if not dims.is_consecutive(category):
                permutation = dims.made_consecutive(category)
                dims = dims.permuted(permutation)
                tracker.transpose(permutation)
            dims = dims.collapsed(category)
            tracker.reshape(dims.sizes)
        return dims, tracker.chain(head)
