"""Splits reductions over dimensions apart from each other
(`xla/backends/gpu/transforms/reduction_splitter.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import array
from hlofuse.passes.gpu.reductions.reduces import has_own_emitter, made_reduce
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ReductionSplitter(Pass):
    """`reduction-splitter`: the largest dimension first, the others in a second reduction."""

    name: ClassVar[str] = "reduction-splitter"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reduce"], self._split, recorder)

    def _split(self, reduce: Instruction) -> bool:
        dimensions = reduce.dimensions
        if has_own_emitter(reduce, self.device) or len(dimensions) < 2 or not reduce.shape.is_array:
            return False
        operand = reduce.operands[0]
        sizes = operand.shape.dimensions
        largest = max(dimensions, key=lambda d: sizes[d])
        left = [size for d, size in enumerate(sizes) if d != largest]
        first = made_reduce(reduce, array(reduce.shape.element_type, left), [operand], [largest])
        rest = [d - (d > largest) for d in dimensions if d != largest]
        return replaced(reduce, made_reduce(reduce, reduce.shape, [first], rest))
