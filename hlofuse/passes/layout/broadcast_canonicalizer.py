"""Broadcasts whose dimensions are in order (`xla/hlo/transforms/simplifiers/broadcast_canonicalizer.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added, numbers, transposed
from hlofuse.passes.common.rewriting import expand_each, replaced
from hlofuse.passes.common.shapes import array, with_layout
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class BroadcastCanonicalizer(Pass):
    """`broadcast_canonicalizer`: what is broadcast is transposed first."""

    name: ClassVar[str] = "broadcast_canonicalizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [
            x
            for computation in module.non_fusion_computations()
            for x in computation.post_order()
            if x.opcode == "broadcast" and list(x.dimensions) != sorted(x.dimensions)
        ]
        return expand_each(found, _canonicalize, recorder)


def _canonicalize(broadcast: Instruction) -> None:
    (operand,) = broadcast.operands
    places = list(broadcast.dimensions)
    permutation = [places.index(d) for d in sorted(places)]
    shape = operand.shape
    sizes = [shape.dimensions[d] for d in permutation]
    moved = transposed(operand, permutation, with_layout(shape.element_type, sizes, shape.minor_to_major))
    result = array(shape.element_type, broadcast.shape.dimensions)
    replaced(
        broadcast,
        added(moved, "broadcast", result, [moved], like=operand, dimensions=numbers(sorted(places))),
    )
