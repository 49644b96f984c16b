"""Products with a vector as ones with a thin matrix (`xla/hlo/transforms/simplifiers/gemv_rewriter.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.reading import numbers_of
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class GemvRewriter(Pass):
    """`gemv-rewriter`."""

    name: ClassVar[str] = "gemv-rewriter"
    layout_sensitive: bool = True

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["dot"], self._widen, recorder)

    def _widen(self, dot: Instruction) -> bool:
        lhs, rhs = dot.operands
        of_lhs, of_rhs = _is_matrix(dot, lhs, "lhs"), _is_matrix(dot, rhs, "rhs")
        vector = rhs if of_lhs else lhs
        # The matrix keeps its layout; unless bitcasts are made, it has to be the usual one, too.
        shapes = [i.shape for i in ((vector, dot) if self.layout_sensitive else (lhs, rhs, dot))]
        if of_lhs == of_rhs or any(s != array(s.element_type, s.dimensions) for s in shapes):
            return False
        opcode = "bitcast" if self.layout_sensitive else "reshape"
        wide = array(vector.shape.element_type, (*vector.shape.dimensions, 1))
        matrix = make.add(dot, opcode, wide, [vector])
        sizes = list(dot.shape.dimensions)
        sizes.insert(len(sizes) if of_lhs else len(sizes) - 1, 1)
        operands = [lhs, matrix] if of_lhs else [matrix, rhs]
        product = make.copy_of(dot, operands, array(dot.shape.element_type, sizes))
        return replaced(dot, make.add(dot, opcode, dot.shape, [product]))


def _is_matrix(dot: Instruction, operand: Instruction, side: str) -> bool:
    """Has it a dimension that is neither of the batch nor summed over?"""
    given = [numbers_of(dot, f"{side}_{kind}_dims") for kind in ("batch", "contracting")]
    return operand.shape.rank == sum(map(len, given)) + 1
