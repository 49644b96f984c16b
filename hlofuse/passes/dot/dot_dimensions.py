"""Passes that merge, sort and normalize the dimensions of products."""

import math
from functools import partial

from hlofuse.cost.gpu.reductions import neighbours
from hlofuse.ir import Dims, Instruction, Ints, Module, Predicate, Shape, replace, replace_instruction
from hlofuse.ir.attributes.window import SliceRange, SliceRanges, Window, WindowDimension
from hlofuse.passes.base import (
    ExpandPass,
    NotRepresentable,
    Pass,
    VisitPass,
    any_change,
    replaced,
)
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, dot_like, new_dot
from hlofuse.passes.common.make import add, added, reducer, reshaped, zero, zeros
from hlofuse.passes.common.shapes import array, is_sorted, numbers_of, with_dimensions, without
from hlofuse.trace import Recorder
from .dot_operands import BATCH, CONTRACTING, FREE, DotOperand, dimensions_of, product_sizes
from .shape_tracker import ShapeTracker


class DotDecomposer(ExpandPass):
    """Dots of batch dimensions first, one contracted and one free dimension (`dot_decomposer.cc`)."""

    name = "dot_decomposer"

    def is_wanted(self, x: Instruction) -> bool:
        is_product = x.is_dot and x.operand_count == 2
        return is_product and not all(_is_canonical(x, side) for side in (0, 1))

    def handle(self, dot: Instruction) -> bool:
        batch = range(len(DotDimensions.of(dot).lhs_batch))
        left, left_contracted = _operand(dot, 0)
        right, right_contracted = _operand(dot, 1)
        new = new_dot(dot, [left, right], [batch, batch], [[left_contracted], [right_contracted]])
        return replace_instruction(dot, make.reshape(dot, dot.shape, new))


def _is_canonical(dot: Instruction, side: int) -> bool:
    batch, contracting = DotDimensions.of(dot).fixed(side)
    free_at_most_one = len(batch) + 2 >= dot.operands[side].rank
    return len(contracting) == 1 and free_at_most_one and batch == tuple(range(len(batch)))


def _operand(dot: Instruction, side: int) -> tuple[Instruction, int]:
    """The operand transposed and reshaped, its contracting dimension last or, on the right, after batches."""
    operand = dot.operands[side]
    sizes = operand.sizes
    dims = DotDimensions.of(dot)
    (batch, contracting), free = dims.fixed(side), dims.free(side, len(sizes))
    order = [*batch, *free, *contracting] if side == 0 else [*batch, *contracting, *free]
    shuffled = replace(operand.shape, dimensions=tuple(sizes[d] for d in order))
    transposed = make.transpose(operand, operand, order, shuffled)
    contracted = math.prod(sizes[d] for d in contracting)
    rest = math.prod(sizes[d] for d in free)
    remaining = [rest] if rest != 1 else []
    new = [contracted]
    # The sizes of the batch are those of the left side, in the order of its own dimensions.
    left = dot.operand.sizes
    first = [n for d, n in enumerate(left) if d in dims.lhs_batch]
    shape = [*first, *remaining, *new] if side == 0 else [*first, *new, *remaining]
    place = len(batch) + (len(remaining) if side == 0 else 0)
    return make.reshape(transposed, array(operand.element_type, shape), transposed), place


class DotDimensionMerger(VisitPass):
    """Batch dimensions side by side in both (`xla/hlo/transforms/simplifiers/dot_dimension_merger.cc`)."""

    name = "dot_dimension_merger"
    opcodes = ("dot",)

    def handle(self, dot: Instruction) -> bool:
        sides = [DotOperand.of(dot, side) for side in (0, 1)]
        count = len(sides[0].groups[BATCH])
        if count < 2 or not all(map(_side_by_side, dot.operands, sides)):
            return False
        pairs = zip(dot.operands, sides, strict=True)
        lhs, rhs = (reshaped(o, _merged_shape(o.shape, s.groups[BATCH][0], count)) for o, s in pairs)
        merged = dimensions_of(*(side.collapsed(BATCH) for side in sides))
        new = dot_like(dot, _merged_shape(dot.shape, 0, count), lhs, rhs, merged)
        return replaced(dot, add(dot, "reshape", dot.shape, [new]))


def _side_by_side(operand: Instruction, dims: DotOperand) -> bool:
    return dims.is_consecutive(BATCH) and neighbours(operand.shape, dims.groups[BATCH])


def _merged_shape(shape: Shape, first: int, count: int) -> Shape:
    size = math.prod(shape.dimensions[first : first + count])
    left = without(shape, range(first + 1, first + count))
    sizes = list(left.dimensions)
    sizes[first] = size
    return replace(left, dimensions=tuple(sizes))


class DotDimensionNormalizer(VisitPass):
    """Also with non-contracting dimensions (`xla/hlo/transforms/dot_dimension_normalizer.cc`)."""

    name = "dot_dimension_normalizer"
    opcodes = ("dot",)

    def handle(self, dot: Instruction) -> bool:
        sides = [DotOperand.of(dot, side) for side in (0, 1)]
        many = [side for side in sides if len(side.groups[FREE]) > 1]
        if len(sides[0].groups[CONTRACTING]) < 2 and not many:
            return False
        lhs, left = self._operand(sides[0], dot.operand)
        rhs, right = self._operand(sides[1], dot.second)
        shape = array(dot.element_type, product_sizes(lhs, rhs))
        new = dot_like(dot, shape, left, right, dimensions_of(lhs, rhs))
        if shape.dimensions != dot.sizes:
            new = add(dot, "reshape", dot.shape, [new])
        return replaced(dot, new)

    def _operand(self, dims: DotOperand, operand: Instruction) -> tuple[DotOperand, Instruction]:
        head = operand.through("transpose", "reshape")
        tracker = ShapeTracker.between(head, operand)
        for category in (CONTRACTING, FREE):
            if category == FREE and len(dims.groups[FREE]) < 2:
                continue
            if not dims.is_consecutive(category):
                permutation = dims.consecutive(category)
                dims = dims.permuted(permutation)
                tracker.transpose(permutation)
            dims = dims.collapsed(category)
            tracker.reshape(dims.sizes)
        return dims, tracker.chain(head)


class DotDimensionSorter(ExpandPass):
    """Where the other operand's stay in order (`xla/backends/gpu/transforms/dot_dimension_sorter.cc`)."""

    name = "dot_dimension_sorter"

    def is_wanted(self, dot: Instruction) -> bool:
        if not dot.is_dot or not all(o.shape.is_row_major for o in dot.operands):
            return False
        dims = DotDimensions.of(dot)
        movable = [s for s in map(dims.contracting, (0, 1)) if _are_neighbours(s)]
        return bool(movable) and not any(map(is_sorted, movable))

    def handle(self, dot: Instruction) -> bool:
        dims = DotDimensions.of(dot)
        key = dims.lhs_contracting if _are_neighbours(dims.lhs_contracting) else dims.rhs_contracting
        permutation = [d - min(key) for d in key]
        left, right = (tuple(s[k] for k in permutation) for s in (dims.lhs_contracting, dims.rhs_contracting))
        new = replace(dims, lhs_contracting=left, rhs_contracting=right)
        return replaced(dot, dot_like(dot, dot.shape, dot.operand, dot.second, new))


def _are_neighbours(dimensions: Ints) -> bool:
    return bool(dimensions) and max(dimensions) - min(dimensions) == len(dimensions) - 1


class DynamicDimensionSimplifier(Pass):
    """`dynamic-dimension-simplifier`: six clean-ups, each over the whole module; what they leave stays."""

    name = "dynamic-dimension-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(
            instruction.computation is not None and clean_up(instruction)
            for clean_up in _CLEAN_UPS
            for computation in module.non_fusion_computations()
            for instruction in computation.post_order()
        )


def _concatenate_of_concatenates(concatenate: Instruction) -> bool:
    if not concatenate.is_concatenate:
        return False
    parts = []
    for operand in concatenate.operands:
        nested = operand.is_concatenate and operand.dimensions == concatenate.dimensions
        parts += operand.operands if nested else [operand]
    if len(parts) == concatenate.operand_count and parts == concatenate.operands:
        return False
    dimensions = concatenate.raw("dimensions") or "{0}"
    return replaced(
        concatenate, added(concatenate, "concatenate", concatenate.shape, parts, dimensions=dimensions)
    )


def _slice_of_concatenate(instruction: Instruction) -> bool:
    if not instruction.is_slice or instruction.rank != 1:
        return False
    concatenate = instruction.operand
    if not concatenate.is_concatenate:
        return False
    window = instruction.attributes["slice"][0]
    start, limit, stride = window.start, window.limit, window.stride
    if stride != 1 or limit - start != instruction.sizes[0]:
        return False
    at = 0
    for operand in concatenate.operands:
        size = operand.sizes[0]
        if at == start and size == limit - start:
            return _forward(instruction, operand)
        at += size
    return False


def _reshape_of_broadcast(reshape: Instruction) -> bool:
    if not reshape.is_reshape or reshape.rank != 0:
        return False
    broadcast = reshape.operand
    if not broadcast.is_broadcast or broadcast.rank != 1 or broadcast.operand.rank:
        return False
    return _forward(reshape, broadcast.operand)


def _reshape_of_reshape(reshape: Instruction) -> bool:
    if not reshape.is_reshape or not reshape.operand.is_reshape:
        return False
    source = reshape.operand.operand
    return source.shape.key == reshape.shape.key and _forward(reshape, source)


def _identity(opcode: str) -> Predicate:
    def forward(instruction: Instruction) -> bool:
        if instruction.opcode != opcode:
            return False
        source = instruction.operand
        return source.shape.key == instruction.shape.key and _forward(instruction, source)

    return forward


def _forward(instruction: Instruction, source: Instruction) -> bool:
    instruction.replace_all_uses_with(source)
    return True


_CLEAN_UPS = (
    _concatenate_of_concatenates,
    _slice_of_concatenate,
    _reshape_of_broadcast,
    _reshape_of_reshape,
    _identity("convert"),
    _identity("reshape"),
)


class RaggedDotRewriter(ExpandPass):
    """`ragged_dot_rewriter`, where no library takes such products."""

    name = "ragged_dot_rewriter"

    def is_wanted(self, x: Instruction) -> bool:
        return x.opcode == "ragged-dot"

    def handle(self, x: Instruction) -> bool:
        return replace_instruction(x, _as_dot(x))


def _as_dot(x: Instruction) -> Instruction:
    """`RaggedToGeneral`."""
    lhs, rhs, sizes = x.operands
    dims = DotDimensions.of(x)
    (ragged,) = numbers_of(x, "lhs_ragged_dims")
    place = sizes.rank - 1
    if ragged in dims.lhs_contracting:
        if dims.lhs_contracting[0] != ragged:
            raise NotRepresentable("a product that contracts another dimension ahead of that of the groups")
        lhs = _moved_first(_dense(lhs, sizes, place, ragged), place)
        rhs = _moved_first(_dense(rhs, sizes, place, dims.rhs_contracting[0]), place)
        dims = DotDimensions(
            lhs_batch=(0, *_next(dims.lhs_batch)),
            rhs_batch=(0, *_next(dims.rhs_batch)),
            lhs_contracting=_next(dims.lhs_contracting),
            rhs_contracting=_next(dims.rhs_contracting),
        )
    elif ragged not in dims.lhs_batch:
        (group,) = numbers_of(x, "rhs_group_dims")
        lhs = _dense(lhs, sizes, place, ragged)
        dims = DotDimensions(
            lhs_batch=dims.lhs_batch,
            rhs_batch=dims.rhs_batch,
            lhs_contracting=(place, *_next(dims.lhs_contracting)),
            rhs_contracting=(group, *dims.rhs_contracting),
        )
    attributes = dims.raw()
    if (precision := x.raw("operand_precision")) is not None:
        attributes["operand_precision"] = precision
    return add(x, "dot", x.shape, [lhs, rhs], copied_attributes=attributes)


def _next(dimensions: Ints) -> Dims:
    return tuple(d + 1 for d in dimensions)


def _dense(
    x: Instruction,
    sizes: Instruction,
    place: int,
    ragged: int,
) -> Instruction:
    """`x` once for each group, a dimension at `place`, zero where a row is of another (`RaggedToDense`)."""
    add, ends = partial(added, x), _running_sum(sizes)
    groups = sizes.sizes[-1]
    kind = sizes.element_type
    bounds = [*sizes.sizes[:-1], groups - 1]
    ranges = SliceRanges(SliceRange(0, n, 1) for n in bounds)
    group_starts = add("slice", with_dimensions(ends.shape, bounds), [ends], slice=ranges)
    none = zeros(x, with_dimensions(ends.shape, [*bounds[:-1], 1]))
    starts = add("concatenate", sizes.shape, [none, group_starts], dimensions=[sizes.rank - 1])

    laid = [*x.sizes[:place], groups, *x.sizes[place:]]
    wide, mask = array(kind, laid), array("pred", laid)
    of_sizes = range(sizes.rank)
    first = add("broadcast", wide, [starts], dimensions=of_sizes)
    count = add("iota", array(kind, [x.sizes[ragged]]), [], iota_dimension="0")
    row = add("broadcast", wide, [count], dimensions=[ragged + 1])
    is_after = add("compare", mask, [first, row], direction="LE")
    end = add("broadcast", wide, [ends], dimensions=of_sizes)
    is_before = add("compare", mask, [row, end], direction="LT")
    is_in = add("and", mask, [is_after, is_before])

    rows = [d if d < place else d + 1 for d in range(x.rank)]
    each = add("broadcast", array(x.element_type, laid), [x], dimensions=rows)
    return add("select", each.shape, [is_in, each, zeros(x, each.shape)])


def _running_sum(sizes: Instruction) -> Instruction:
    """The end of each group (`CreateCumulativeSum`)."""
    groups = sizes.sizes[-1]
    plain = [WindowDimension(1)] * (sizes.rank - 1)
    window = Window((*plain, WindowDimension(groups, padding_low=groups - 1)))
    kind = sizes.element_type
    summed = reducer(sizes, "add", "add", kind)
    start = zero(sizes, kind)
    operands = [sizes, start]
    return added(sizes, "reduce-window", sizes.shape, operands, called=summed, window=window)


def _moved_first(x: Instruction, dimension: int) -> Instruction:
    """`x` with that dimension and the first swapped (`TransposeIndexToFront`)."""
    if dimension == 0:
        return x
    order = [*range(x.rank)]
    order[0], order[dimension] = dimension, 0
    shape = with_dimensions(x.shape, [x.sizes[d] for d in order])
    return added(x, "transpose", shape, [x], dimensions=order)
