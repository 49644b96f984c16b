"""Products without batch dimensions of size 1
(`xla/hlo/transforms/simplifiers/batch_dot_simplification.cc`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.rewriting import expand_each
from hlofuse.passes.common.shapes import without
from hlofuse.trace import Recorder


class BatchDotSimplifier(Pass):
    name = "batch-dot-simplification"

    def run(self, module: Module, recorder: Recorder) -> bool:
        dots = [i for c in module.non_fusion_computations() for i in c if i.opcode == "dot" and _trivial(i)]
        return expand_each(dots, _simplify, recorder)


def _trivial(dot: Instruction) -> list[int]:
    """Batch dimensions of size 1, where all batch dimensions come first and one is summed over."""
    numbers = DotDimensions.of(dot)
    in_order = tuple(range(len(numbers.lhs_batch)))
    if numbers.lhs_batch != in_order or numbers.rhs_batch != in_order or len(numbers.lhs_contracting) != 1:
        return []
    return [d for d in in_order if dot.operands[0].shape.dimensions[d] == 1]


def _simplify(dot: Instruction) -> None:
    trivial, numbers = _trivial(dot), DotDimensions.of(dot)
    operands = [make.reshaped(o, without(o.shape, trivial)) for o in dot.operands]
    batch = range(len(numbers.lhs_batch) - len(trivial))
    contracting = [[numbers.contracting(k)[0] - len(trivial)] for k in (0, 1)]
    new = new_dot(dot, operands, [batch, batch], contracting, dot.shape.element_type, dot)
    replace_instruction(dot, make.reshaped(new, dot.shape), has_side_effect)
