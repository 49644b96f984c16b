"""Merges reduced dimensions that follow each other
(`xla/backends/gpu/transforms/reduction_dimension_grouper.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import bitcast
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import array
from hlofuse.passes.gpu.reductions.reduces import inputs_of, made_reduce
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ReductionDimensionGrouper(Pass):
    """`reduction-dimension-grouper`: `[2,3,4]` reduced over 1 and 2 becomes `[2,12]` reduced over 1."""

    name: ClassVar[str] = "reduction-dimension-grouper"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reduce"], _group, recorder)


def _group(reduce: Instruction) -> bool:
    reduced = frozenset(reduce.dimensions)
    if not any(d + 1 in reduced for d in reduced):
        return False
    sizes: list[int] = []
    dimensions: list[int] = []
    held = 1
    for d, size in enumerate(reduce.operands[0].shape.dimensions):
        if d in reduced and d + 1 in reduced:
            held *= size
            continue
        if d in reduced:
            dimensions.append(len(sizes))
        sizes.append(held * size)
        held = 1
    inputs = [bitcast(i, array(i.shape.element_type, sizes)) for i in inputs_of(reduce)]
    return replaced(reduce, made_reduce(reduce, reduce.shape, inputs, dimensions))
