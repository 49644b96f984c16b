"""Passes on gathers."""

import math

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.index_vectors import (
    counted_loop,
    flat_indices,
    in_operand_space,
    index_vector,
    moved,
    padded,
    reshaped,
    scalars,
    slice_at,
    with_vectors_last,
    without_dimensions,
)
from hlofuse.passes.common.reading import numbers_of
from hlofuse.passes.common.rewriting import (
    NotRepresentable,
    RewritePass,
    expand_each,
    substituted,
)
from hlofuse.passes.common.shapes import array, is_identity
from hlofuse.trace import Recorder


class GatherSimplifier(RewritePass):
    """Gathers of indices in two dimensions that collapse nothing
    (`xla/hlo/transforms/simplifiers/gather_simplifier.cc`)."""

    name = "gather_simplifier"
    opcodes = ("gather",)

    def handle(self, gather: Instruction) -> bool:
        return not _is_simplified(gather) and substituted(gather, _simplified(gather))


def _is_simplified(gather: Instruction) -> bool:
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
    attributes = (
        {"indices_are_sorted": "true"} if gather.attributes.raw("indices_are_sorted") == "true" else {}
    )
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
        copied_attributes=attributes,
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


class GatherExpander(Pass):
    """`gather_expander` of simple gathers (`kEliminateSimpleGathers`): gathers of everything become a
    broadcast, those of one slice a loop of one turn (`xla/service/gather_expander.cc`)."""

    name = "gather_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        simple = [
            x
            for computation in module.non_fusion_computations()
            if any(x.opcode == "gather" for x in computation)
            for x in computation.post_order()
            if x.opcode == "gather" and _is_simple(x)
        ]
        return expand_each(simple, _expand, recorder)


def _expand(gather: Instruction) -> None:
    new = _broadcast(gather) if _takes_all(gather) else _sliced(gather)
    replace_instruction(gather, new, has_side_effect)


def _is_simple(gather: Instruction) -> bool:
    return gather.shape.element_count > 0 and (math.prod(_outer(gather)) == 1 or _takes_all(gather))


def _outer(gather: Instruction) -> list[int]:
    """How many slices there are in each dimension of the indices."""
    vector = int(gather.attributes["index_vector_dim"])
    return [n for d, n in enumerate(gather.operands[1].shape.dimensions) if d != vector]


def _takes_all(gather: Instruction) -> bool:
    """`GatherIsBroadcast`."""
    return numbers_of(gather, "slice_sizes") == tuple(gather.operands[0].shape.dimensions)


def _dropped(gather: Instruction) -> tuple[int, ...]:
    """`GetDegeneratedSliceDims`."""
    return numbers_of(gather, "collapsed_slice_dims") + numbers_of(gather, "operand_batching_dims")


def _broadcast(gather: Instruction) -> Instruction:
    operand = without_dimensions(gather.operands[0], _dropped(gather))
    return make.broadcast(operand, gather.shape, operand, numbers_of(gather, "offset_dims"))


def _sliced(gather: Instruction) -> Instruction:
    operand, indices = gather.operands
    if numbers_of(gather, "operand_batching_dims"):
        raise NotRepresentable("a gather with batch dimensions")
    dropped = _dropped(gather)
    sizes = numbers_of(gather, "slice_sizes")
    state = [operand, _canonical(gather, indices)]
    zero = make.scalar(gather, gather.shape.element_type, 0)
    remaining = [n for d, n in enumerate(sizes) if d not in dropped]
    state.append(make.broadcast(gather, array(gather.shape.element_type, [1, *remaining]), zero, ()))

    def body(number: Instruction, state: list[Instruction]) -> list[Instruction]:
        """`GatherLoopBody`."""
        operand, indices, result = state
        place = make.broadcast(number, array("s32", [1]), number, ())
        index = index_vector(indices, place)
        start = in_operand_space(index, operand.shape.rank, numbers_of(gather, "start_index_map"))
        part = without_dimensions(slice_at(operand, start, sizes), dropped)
        update = reshaped(part, [1, *part.shape.dimensions])
        at = scalars(padded(place, part.shape.rank))
        return [operand, indices, make.dynamic_update_slice(result, result, update, at)]

    result = counted_loop(gather, 1, state, body)[-1]
    outer = _outer(gather)
    result = reshaped(result, [*outer, *remaining]) if outer else without_dimensions(result, [0])
    return _in_order(gather, result)


def _canonical(gather: Instruction, indices: Instruction) -> Instruction:
    """One index vector below the other (`CanonicalizeGatherIndices`)."""
    vector, rank = int(gather.attributes["index_vector_dim"]), indices.shape.rank
    indices = with_vectors_last(indices, vector)
    inner = indices.shape.dimensions[rank - 1 :] if vector < rank else ()
    return reshaped(indices, [1, *inner])


def _in_order(gather: Instruction, result: Instruction) -> Instruction:
    """Dimensions of slices where the gather has them (`PermuteBatchAndOffsetDims`)."""
    offset, rank = numbers_of(gather, "offset_dims"), gather.shape.rank
    outer, inner = iter(range(rank)), iter(range(rank - len(offset), rank))
    order = [next(inner) if d in offset else next(outer) for d in range(rank)]
    return result if is_identity(order) else make.transpose(result, result, order)
