"""Reshapes and broadcasts that keep memory in order."""

from __future__ import annotations

from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added, bitcast, copied, numbers, transposed
from hlofuse.passes.common.rewriting import expand_each, replaced, visit_module
from hlofuse.passes.common.shapes import aligned, array, descending, with_layout
from hlofuse.trace import Recorder

# Makes reshapes bitcasts and physical transposes (`xla/hlo/transforms/expanders/reshape_decomposer.cc`).


class ReshapeDecomposer(Pass):
    """`reshape-decomposer`: a bitcast where the layouts allow it, else with a copy ahead, behind, or both."""

    name = "reshape-decomposer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reshape"], _decompose, recorder)


def _decompose(reshape: Instruction) -> bool:
    operand = reshape.operands[0]
    source, result = operand.shape, reshape.shape
    if reshape_is_bitcast(source, result):
        return replaced(reshape, bitcast(operand, result))
    before = aligned(result, source)
    if before is not None:
        return replaced(reshape, bitcast(copied(operand, before), result))
    after = aligned(source, result)
    if after is not None:
        return replaced(reshape, copied(bitcast(operand, after), result))
    plain = copied(operand, descending(source))
    return replaced(reshape, copied(bitcast(plain, descending(result)), result))


# Broadcasts whose dimensions are in order (`xla/hlo/transforms/simplifiers/broadcast_canonicalizer.cc`).


class BroadcastCanonicalizer(Pass):
    """`broadcast_canonicalizer`: what is broadcast is transposed first."""

    name = "broadcast_canonicalizer"

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
