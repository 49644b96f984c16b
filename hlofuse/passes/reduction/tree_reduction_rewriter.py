"""Long reductions in two steps (`xla/hlo/transforms/simplifiers/tree_reduction_rewriter.cc`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class TreeReductionRewriter(Pass):
    """`tree_reduction_rewriter`."""

    name: ClassVar[str] = "tree_reduction_rewriter"
    is_skipped: Callable[[Instruction], bool]
    """Reductions of a library."""
    window: int = 32

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reduce"], self._split, recorder)

    def _split(self, reduce: Instruction) -> bool:
        if reduce.shape.is_tuple or self.is_skipped(reduce):
            return False
        operand, init = reduce.operands
        sizes = operand.shape.dimensions
        if all(sizes[d] <= self.window for d in reduce.dimensions):
            return False
        window, left = [], []
        for d, size in enumerate(sizes):
            width = min(size, self.window) if d in reduce.dimensions else 1
            steps = -(-size // width) if width else 0
            padding = max((steps - 1) * width + width - size, 0)
            window.append(WindowDimension(width, width, padding // 2, padding - padding // 2))
            left.append(steps)
        function = reduce.called_computations[0]
        first = make.add(
            reduce,
            "reduce-window",
            array(init.shape.element_type, left),
            [operand, init],
            called=[("to_apply", function)],
            window=Window(tuple(window)),
        )
        second = make.reduce(reduce, first, init, reduce.dimensions, function)
        second.shape = reduce.shape
        return replaced(reduce, second)
