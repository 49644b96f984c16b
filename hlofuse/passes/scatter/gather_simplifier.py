"""Gathers of indices in two dimensions that collapse nothing
(`xla/hlo/transforms/simplifiers/gather_simplifier.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.index_vectors import flat_indices, moved, reshaped, without_dimensions
from hlofuse.passes.common.reading import numbers_of
from hlofuse.passes.common.rewriting import NotRepresentable, rewrite_each
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class GatherSimplifier(Pass):
    """`gather_simplifier`."""

    name: ClassVar[str] = "gather_simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ["gather"], _handle, recorder)


def _handle(gather: Instruction) -> bool:
    return not _is_simple(gather) and replace_instruction(
        gather, _simplified(gather), has_side_effect, relay_control_dependencies=True
    )


def _is_simple(gather: Instruction) -> bool:
    """`IsSimplifiedGather`."""
    offset, collapsed = numbers_of(gather, "offset_dims"), numbers_of(gather, "collapsed_slice_dims")
    if not offset and not collapsed:
        return False
    return (
        gather.operands[1].shape.rank == 2
        and gather.attributes["index_vector_dim"] == 1
        and not collapsed
        and offset[0] == 1
        and offset[-1] == len(offset)
    )


def _simplified(gather: Instruction) -> Instruction:
    operand, indices = gather.operands
    sizes, offset = numbers_of(gather, "slice_sizes"), numbers_of(gather, "offset_dims")
    collapsed = numbers_of(gather, "collapsed_slice_dims")
    vector = int(gather.attributes["index_vector_dim"])
    if 0 in sizes:
        zero = make.scalar(gather, gather.shape.element_type, 0)
        return make.broadcast(gather, gather.shape, zero, ())
    if not operand.shape.dimensions:
        return make.broadcast(gather, gather.shape, operand, ())
    if gather.attributes.get("operand_batching_dims"):
        raise NotRepresentable("a gather with batch dimensions")
    flat = flat_indices(indices, vector)
    said = {"indices_are_sorted": "true"} if gather.attributes.raw("indices_are_sorted") == "true" else {}
    result = make.add(
        gather,
        "gather",
        array(operand.shape.element_type, [flat.shape.dimensions[0], *sizes]),
        [operand, flat],
        offset_dims=make.numbers(range(1, operand.shape.rank + 1)),
        collapsed_slice_dims="{}",
        start_index_map=make.numbers(numbers_of(gather, "start_index_map")),
        index_vector_dim=1,
        slice_sizes=make.numbers(sizes),
        kept=said,
    )
    if collapsed:
        result = without_dimensions(result, [d + 1 for d in collapsed])
    outer = [n for d, n in enumerate(indices.shape.dimensions) if d != vector]
    if len(outer) > 1:
        result = reshaped(result, [*outer, *result.shape.dimensions[1:]])
    elif not outer:
        result = without_dimensions(result, [0])
    inner, start = len(outer), 0
    order = []
    for d in range(len(outer) + len(offset)):
        if d in offset:
            order.append(inner)
            inner += 1
        else:
            order.append(start)
            start += 1
    return moved(result, order)
