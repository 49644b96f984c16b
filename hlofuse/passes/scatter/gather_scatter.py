"""Passes on gathers and scatters."""

import math
from functools import partial

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Computation, Dims, Instruction, Instructions, Ints, Module, Shape, replace_instruction
from hlofuse.passes.base import NotRepresentable, Pass, ReleasePass, RewritePass, expand_each, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation
from hlofuse.passes.common.index_vectors import (
    counted_loop,
    flat_indices,
    in_operand_space,
    index_vector,
    is_simplified_scatter,
    moved,
    reshaped,
    scalars,
    slice_at,
    with_vectors_last,
    without_dimensions,
)
from hlofuse.passes.common.shapes import array, is_identity, numbers_of, others, permute, slice_sizes_of
from hlofuse.trace import Recorder


class GatherSimplifier(ReleasePass, RewritePass):
    """Gathers of indices in two dimensions that collapse nothing (`gather_simplifier.cc`)."""

    name = "gather_simplifier"
    opcodes = ("gather",)

    def handle(self, gather: Instruction) -> bool:
        is_any = self.release.gathers_from_any_dimension
        order = _indexed_first(gather.operand, numbers_of(gather, "start_index_map"), is_any)
        if _is_simplified(gather) and is_identity(order):
            return False
        return substituted(gather, _simplified_gather(gather, order))


def _indexed_first(array: Instruction, indexed: Ints, is_any: bool) -> list[int]:
    """All dimensions, indexed ones first unless `is_any` (`MakeOperandStartIndexPermutations`)."""
    dimensions = range(array.rank)
    return [*dimensions] if is_any else [*indexed, *(d for d in dimensions if d not in indexed)]


def _is_simplified(gather: Instruction) -> bool:
    """`IsSimplifiedGather`."""
    offset, collapsed = numbers_of(gather, "offset_dims"), numbers_of(gather, "collapsed_slice_dims")
    if not offset and not collapsed:
        return False
    return (
        gather.second.rank == 2
        and gather.attributes["index_vector_dim"] == 1
        and not collapsed
        and offset[0] == 1
        and offset[-1] == len(offset)
    )


def _simplified_gather(gather: Instruction, order: Ints) -> Instruction:
    operand, indices = gather.operands
    sizes, offset = numbers_of(gather, "slice_sizes"), numbers_of(gather, "offset_dims")
    collapsed = numbers_of(gather, "collapsed_slice_dims")
    vector = int(gather.attributes["index_vector_dim"])
    if 0 in sizes:
        zero = make.scalar(gather, gather.element_type, 0)
        return make.broadcast(gather, gather.shape, zero)
    if not operand.sizes:
        return make.broadcast(gather, gather.shape, operand)
    if gather.attributes.get("operand_batching_dims"):
        raise NotRepresentable("a gather with batch dimensions")
    flat = flat_indices(indices, vector)
    attributes = {"indices_are_sorted": "true"} if gather.raw("indices_are_sorted") == "true" else {}
    taken, mapped = permute(sizes, order), numbers_of(gather, "start_index_map")
    result = make.add(
        gather,
        "gather",
        array(operand.element_type, [flat.sizes[0], *taken]),
        [moved(operand, order), flat],
        offset_dims=range(1, operand.rank + 1),
        collapsed_slice_dims="{}",
        start_index_map=[order.index(d) for d in mapped],
        index_vector_dim=1,
        slice_sizes=taken,
        copied_attributes=attributes,
    )
    result = moved(result, [0, *(d + 1 for d in inverse(tuple(order)))])
    if collapsed:
        result = without_dimensions(result, [d + 1 for d in collapsed])
    outer = [n for d, n in enumerate(indices.sizes) if d != vector]
    if len(outer) > 1:
        result = reshaped(result, [*outer, *result.sizes[1:]])
    elif not outer:
        result = without_dimensions(result, [0])
    return moved(result, _order(offset, len(outer) + len(offset)))


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
            if x.opcode == "gather" and x.element_count > 0
            if math.prod(_outer(x)) == 1 or _takes_all(x)
        ]
        return expand_each(simple, _expand, recorder)


def _expand(gather: Instruction) -> None:
    new = _broadcast(gather) if _takes_all(gather) else _slice(gather)
    replace_instruction(gather, new)


def _outer(x: Instruction) -> list[int]:
    vector = int(x.attributes["index_vector_dim"])
    indices = x.operands[x.operand_count // 2]
    return [n for d, n in enumerate(indices.sizes) if d != vector]


def _takes_all(gather: Instruction) -> bool:
    """`GatherIsBroadcast`."""
    return numbers_of(gather, "slice_sizes") == tuple(gather.operand.sizes)


def _dropped_dimensions(gather: Instruction) -> Dims:
    """`GetDegeneratedSliceDims`."""
    return numbers_of(gather, "collapsed_slice_dims") + numbers_of(gather, "operand_batching_dims")


def _broadcast(gather: Instruction) -> Instruction:
    operand = without_dimensions(gather.operand, _dropped_dimensions(gather))
    return make.broadcast(operand, gather.shape, operand, numbers_of(gather, "offset_dims"))


def _slice(gather: Instruction) -> Instruction:
    operand, indices = gather.operands
    if numbers_of(gather, "operand_batching_dims"):
        raise NotRepresentable("a gather with batch dimensions")
    dropped = _dropped_dimensions(gather)
    sizes = numbers_of(gather, "slice_sizes")
    state = [operand, _canonical(gather, indices)]
    zero = make.scalar(gather, gather.element_type, 0)
    remaining = [n for d, n in enumerate(sizes) if d not in dropped]
    state.append(make.broadcast(gather, array(gather.element_type, [1, *remaining]), zero))

    def body(number: Instruction, state: Instructions) -> Instructions:
        """`GatherLoopBody`."""
        operand, indices, result = state
        place = make.broadcast(number, array("s32", [1]), number)
        index = index_vector(indices, place)
        start = in_operand_space(index, operand.rank, numbers_of(gather, "start_index_map"))
        part = without_dimensions(slice_at(operand, start, sizes), dropped)
        update = reshaped(part, [1, *part.sizes])
        at = scalars(make.padded(place, place, 0, part.rank))
        return [operand, indices, make.dynamic_update_slice(result, result, update, at)]

    result = counted_loop(gather, state, body)[-1]
    outer = _outer(gather)
    result = reshaped(result, [*outer, *remaining]) if outer else without_dimensions(result, [0])
    # Dimensions of slices where the gather has them (`PermuteBatchAndOffsetDims`).
    order = _order(numbers_of(gather, "offset_dims"), gather.rank)
    return result if is_identity(order) else make.transpose(result, result, order)


def _canonical(gather: Instruction, indices: Instruction) -> Instruction:
    """One index vector below the other (`CanonicalizeGatherIndices`)."""
    vector, rank = int(gather.attributes["index_vector_dim"]), indices.rank
    indices = with_vectors_last(indices, vector)
    inner = indices.sizes[rank - 1 :] if vector < rank else ()
    return reshaped(indices, [1, *inner])


def _order(offset: Ints, rank: int) -> list[int]:
    outer, inner = iter(range(rank)), iter(range(rank - len(offset), rank))
    return [next(inner) if d in offset else next(outer) for d in range(rank)]


class ScatterSimplifier(ReleasePass, RewritePass):
    """`scatter_simplifier`; a scatter into a scalar is left alone (`xla/service/scatter_simplifier.cc`)."""

    name = "scatter_simplifier"
    opcodes = ("scatter",)
    into_any_dimension: bool = False

    def handle(self, x: Instruction) -> bool:
        targets = numbers_of(x, "scatter_dims_to_operand_dims")
        is_any = self.into_any_dimension or self.release.scatters_into_any_dimension
        order = _indexed_first(x.operand, targets, is_any)
        if self.release.moves_for_longer_runs and not _pays(x, order):
            order = sorted(order)
        if not order or (is_simplified_scatter(x) and is_identity(order)):
            return False
        new = _simplified_scatter(x, order, targets)
        return substituted(x, new if is_identity(order) else _moved_back(new, inverse(tuple(order))))


def _pays(scatter: Instruction, order: Ints) -> bool:
    """True if updates of a quarter of the array or more go into longer runs of it, by `order` (asked)."""
    sizes, window = scatter.operand.sizes, slice_sizes_of(scatter)
    is_large = 4 * scatter.operands[-1].element_count >= math.prod(sizes)
    return is_large and _run(permute(sizes, order), permute(window, order)) > _run(sizes, window)


def _run(sizes: Ints, window: Ints) -> int:
    """Elements of a window that lie one behind the other."""
    run = 1
    for size, taken in zip(reversed(sizes), reversed(window), strict=True):
        run *= taken
        if taken != size:
            break
    return run


def _moved_back(scatter: Instruction, order: Ints) -> Instruction:
    if scatter.is_array:
        return moved(scatter, order)
    results = make.elements(scatter, range(scatter.tuple_size))
    return make.tuple_of(scatter, [moved(r, order) for r in results])


def _simplified_scatter(
    scatter: Instruction,
    order: Ints,
    targets: Ints,
) -> Instruction:
    count = scatter.operand_count // 2
    bases = [moved(o, order) for o in scatter.operands[:count]]
    places = [0, *(d + 1 for d in order)]
    updates = [moved(_flat(scatter, u), places) for u in scatter.operands[count + 1 :]]
    if scatter.attributes.get("input_batching_dims"):
        raise NotRepresentable("a scatter with batch dimensions")
    indices = flat_indices(scatter.operands[count], int(scatter.attributes["index_vector_dim"]))
    attributes = {
        name: "true" for name in ("indices_are_sorted", "unique_indices") if scatter.raw(name) == "true"
    }
    return make.add(
        scatter,
        "scatter",
        Shape.maybe_tuple_of([b.shape for b in bases]),
        [*bases, indices, *updates],
        called=scatter.to_apply,
        update_window_dims=range(1, bases[0].rank + 1),
        inserted_window_dims="{}",
        scatter_dims_to_operand_dims=[order.index(d) for d in targets],
        index_vector_dim=1,
        copied_attributes=attributes,
    )


def _flat(scatter: Instruction, updates: Instruction) -> Instruction:
    """One update below the other, each with all dimensions of the result (`FlattenAndTransposeUpdates`)."""
    window = numbers_of(scatter, "update_window_dims")
    outer = others(updates.rank, window)
    updates = moved(updates, [*outer, *window])
    sizes = list(updates.sizes)
    if len(outer) != 1:
        updates = reshaped(updates, [math.prod(sizes[: len(outer)]), *sizes[len(outer) :]])
    if inserted := numbers_of(scatter, "inserted_window_dims"):
        sizes = list(updates.sizes)
        for d in inserted:
            sizes.insert(d + 1, 1)
        updates = reshaped(updates, sizes)
    return updates


class ScatterExpander(RewritePass):
    """Without batches: scatters of a single update (`kEliminateSimpleScatters`), or of elements of
    `least_bits` and into several arrays, become loops (`xla/service/scatter_expander.cc`)."""

    name = "scatter_expander"
    opcodes = ("scatter",)
    least_bits: int = 0

    def handle(self, x: Instruction) -> bool:
        return _is_chosen(x, self.least_bits) and substituted(x, _expanded(x))


def _is_chosen(scatter: Instruction, least_bits: int) -> bool:
    if numbers_of(scatter, "input_batching_dims"):
        return False
    if least_bits:
        return scatter.is_tuple or scatter.shape.bit_width >= least_bits
    return math.prod(_outer(scatter)) == 1 and scatter.operand.rank > 0


def _expanded(scatter: Instruction) -> Instruction:
    count = scatter.operand_count // 2
    results = list(scatter.operands[:count])
    updates = scatter.operands[count + 1 :]
    if updates[0].element_count:
        indices = _indices(scatter, scatter.operands[count])
        state = [*results, indices, *(_updates(scatter, u) for u in updates)]
        body = partial(_body, scatter)
        results = counted_loop(scatter, state, body, indices.sizes[0])[:count]
    return make.result_of(scatter, results)


def _indices(scatter: Instruction, indices: Instruction) -> Instruction:
    """One index vector below the other; scalars where it has one number (`CanonicalizeScatterIndices`)."""
    vector, rank = int(scatter.attributes["index_vector_dim"]), indices.rank
    last = with_vectors_last(indices, vector)
    inner = 0 if vector == rank else 1
    if vector == rank - 1 and indices.sizes[-1] == 1:
        inner = 0
        reshaped(indices, indices.sizes[:-1])  # XLA makes this, too, and does not use it
    sizes = last.sizes
    return reshaped(last, [math.prod(sizes[: rank - inner]), *sizes[rank - inner :]])


def _updates(scatter: Instruction, updates: Instruction) -> Instruction:
    """One update below the other (`PermuteScatterAndWindowDims`, `AdjustScatterDims`)."""
    window = numbers_of(scatter, "update_window_dims")
    moved = make.transpose(updates, updates, [*others(updates.rank, window), *window])
    count = len(_outer(scatter))
    sizes = moved.sizes
    return reshaped(moved, [math.prod(sizes[:count]), *sizes[count:]])


def _body(
    scatter: Instruction,
    number: Instruction,
    state: Instructions,
) -> Instructions:
    """`ScatterLoopBody`."""
    count = len(state) // 2
    bases, indices, updates = state[:count], state[count], state[count + 1 :]
    place = make.broadcast(number, array("s32", [1]), number)
    index = index_vector(indices, place)
    start = in_operand_space(index, bases[0].rank, numbers_of(scatter, "scatter_dims_to_operand_dims"))
    first = make.padded(place, place, 0, updates[0].rank - 1)
    sizes = list[int]()
    parts, old = Instructions(), Instructions()
    for base, update in zip(bases, updates, strict=True):
        part = without_dimensions(slice_at(update, first, [1, *update.sizes[1:]]), [0])
        sizes = list(part.sizes)
        for d in sorted(numbers_of(scatter, "inserted_window_dims")):
            sizes.insert(d, 1)
        parts.append(reshaped(part, sizes))
        old.append(slice_at(base, start, sizes))
    valid = _validity(bases[0], start, sizes)
    for k, part in enumerate(parts):
        value = make.add(
            part,
            "map",
            part.shape,
            [*old, *parts],
            called=_result_of(scatter.to_apply, k),
            dimensions=range(len(sizes)),
        )
        chosen = make.select(part, valid, value, old[k])
        bases[k] = make.dynamic_update_slice(part, bases[k], chosen, scalars(start))
    return [*bases, indices, *updates]


def _result_of(function: Computation, k: int) -> Computation:
    """The function that computes result `k` alone (`CallAndGetOutput`)."""
    if not function.root.is_tuple:
        return function
    single = clone_computation(function, f"dup.{k}")
    single.root = make.get_tuple_element(single.root, single.root, k)
    return single


def _validity(base: Instruction, start: Instruction, sizes: list[int]) -> Instruction:
    """`CheckIndexValidity`: an update that does not fit is not made."""
    zero = make.scalar(start, start.element_type, 0)
    above = make.compare(start, "LE", make.broadcast(start, start.shape, zero), start)
    room = [n - size for n, size in zip(base.sizes, sizes, strict=True)]
    most = make.constant(start, start.shape, room)
    inside = make.binary(start, "and", above, make.compare(start, "GE", most, start))
    true = make.scalar(start, "pred", True)
    all_of = make.reduce(
        start, inside, true, [0], make.reducer(start, "and.reduce_sub_computation", "and", "pred")
    )
    return make.broadcast(start, array("pred", sizes), all_of)
