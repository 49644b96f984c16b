"""Makes the inputs of reductions row-major
(`xla/backends/gpu/transforms/reduction_layout_normalizer.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.layout_shapes import physical
from hlofuse.passes.common.make import added
from hlofuse.passes.common.rewriting import visit_module
from hlofuse.passes.common.shapes import with_layout
from hlofuse.passes.gpu.reductions.reduces import (
    inputs_of,
    made_reduce,
    replaced_through_bitcasts,
    results_of,
)
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ReductionLayoutNormalizer(Pass):
    """`reduction-layout-normalizer`: dimensions are renumbered as they lie in memory.

    A reduction of several arrays is made anew even where nothing is to be renumbered, as by XLA.
    """

    name: ClassVar[str] = "reduction-layout-normalizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reduce"], _normalize, recorder)


def _normalize(reduce: Instruction) -> bool:
    inputs, results = inputs_of(reduce), results_of(reduce)
    first = inputs[0].shape
    if any(i.shape.minor_to_major != first.minor_to_major for i in inputs):
        return False
    if len(inputs) == 1 and first.is_row_major:
        return False
    major_to_minor = first.minor_to_major[::-1]
    reduced = frozenset(reduce.dimensions)
    kept = [d for d in range(first.rank) if d not in reduced]
    dimensions = [k for k, d in enumerate(major_to_minor) if d in reduced]
    # What is kept, in the order of the input's memory, by its number in the result.
    order = tuple(kept.index(d) for d in major_to_minor if d not in reduced)
    number = inverse(order)
    shapes = []
    for result in results:
        sizes = [result.dimensions[d] for d in order]
        shapes.append(with_layout(result.element_type, sizes, [number[d] for d in result.minor_to_major]))
    plain = [
        i if i.shape.is_row_major else added(i, "bitcast", physical(i.shape), [i], like=i) for i in inputs
    ]
    return replaced_through_bitcasts(
        reduce, made_reduce(reduce, Shape.maybe_tuple_of(shapes), plain, dimensions)
    )
