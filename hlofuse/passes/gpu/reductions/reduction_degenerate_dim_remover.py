"""Drops dimensions of size one from reductions
(`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import without_ones
from hlofuse.passes.gpu.reductions.reduces import (
    inputs_of,
    made_reduce,
    replaced_through_bitcasts,
    results_of,
)
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ReductionDegenerateDimRemover(Pass):
    """`reduction-degenerate-dim-remover`: the inputs become bitcasts, and so does what reduces nothing."""

    name: ClassVar[str] = "reduction-degenerate-dim-remover"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reduce"], _remove, recorder)


def _remove(reduce: Instruction) -> bool:
    sizes = reduce.operands[0].shape.dimensions
    if 1 not in sizes:
        return False
    kept = [d for d, size in enumerate(sizes) if size != 1]
    dimensions = [k for k, d in enumerate(kept) if d in reduce.dimensions]
    inputs, results = inputs_of(reduce), results_of(reduce)
    if not dimensions:
        return replaced(reduce, added(reduce, "bitcast", results[0], [inputs[0]], like=reduce))
    flat = [added(i, "bitcast", without_ones(i.shape), [i]) for i in inputs]
    shape = Shape.maybe_tuple_of([without_ones(r) for r in results])
    return replaced_through_bitcasts(reduce, made_reduce(reduce, shape, flat, dimensions))
