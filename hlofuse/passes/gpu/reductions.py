"""Passes on reductions and transposes: fewer dimensions, in the order they lie in memory; partial sums."""

import math
from collections.abc import Iterable

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.reductions import (
    RACE_FREE_ROWS,
    Reduction,
    faster_than_elemental,
    is_race_free,
    race_free_bound,
    reduction_of,
)
from hlofuse.cost.gpu.shapes import inverse, normalized_transpose
from hlofuse.ir import Instruction, Instructions, InstructionSequence, Module, Shape
from hlofuse.passes.base import Explained, Pass, VisitPass, replaced, visit_module
from hlofuse.passes.common import make
from hlofuse.passes.common.make import add, added, bitcast
from hlofuse.passes.common.shapes import (
    array,
    permute,
    permuted,
    physical,
    with_layout,
    without,
    without_ones,
)
from hlofuse.rules.rewrites import GROUPED_DIMENSIONS, LONG_SUM_ON_GPU, SPLIT_DIMENSIONS
from hlofuse.trace import Recorder


def inputs_of(reduce: Instruction) -> Instructions:
    """`HloReduceInstruction::inputs`."""
    return reduce.operands[: reduce.operand_count // 2]


def initial_values_of(reduce: Instruction) -> Instructions:
    return reduce.operands[reduce.operand_count // 2 :]


def kind_of(reduce: Instruction) -> Reduction:
    """`GetReductionKindAndContiguousComponents`."""
    return reduction_of(reduce.operand.shape, reduce.dimensions)[0]


def has_own_emitter(reduce: Instruction, device: DeviceDescription) -> bool:
    """`IsReductionFromOrToContiguousDimensions`."""
    kind, together = reduction_of(reduce.operand.shape, reduce.dimensions)
    return together and faster_than_elemental(device, kind)


def reduce_like(
    reduce: Instruction,
    shape: Shape,
    inputs: InstructionSequence,
    dimensions: Iterable[int],
) -> Instruction:
    """The same reduction of other inputs over other dimensions, added to its computation."""
    return add(
        reduce,
        "reduce",
        shape,
        [*inputs, *initial_values_of(reduce)],
        dimensions=list(dimensions),
        called=list(reduce.called),
    )


def replaced_through_bitcasts(reduce: Instruction, new: Instruction) -> bool:
    """`new` takes the place of `reduce`, each result made a bitcast to the old shape where shapes differ."""
    if new.shape.key == reduce.shape.key:
        return replaced(reduce, new)
    if not new.is_tuple:
        return replaced(reduce, add(reduce, "bitcast", reduce.shape, [new]))
    shapes = reduce.shape.tuple_shapes
    parts = [bitcast(make.bare_element(reduce, new, k), was) for k, was in enumerate(shapes)]
    return replaced(reduce, make.tuple_of(reduce, parts))


class ReductionDimensionGrouper(VisitPass):
    """`reduction-dimension-grouper`: `[2,3,4]` reduced over 1 and 2 becomes `[2,12]` reduced over 1
    (`xla/backends/gpu/transforms/reduction_dimension_grouper.cc`)."""

    name = "reduction-dimension-grouper"
    opcodes = ("reduce",)
    explained = Explained(GROUPED_DIMENSIONS)

    def handle(self, reduce: Instruction) -> bool:
        reduced = frozenset(reduce.dimensions)
        if not any(d + 1 in reduced for d in reduced):
            return False
        sizes = list[int]()
        dimensions = []
        refused = 1
        for d, size in enumerate(reduce.operand.sizes):
            if d in reduced and d + 1 in reduced:
                refused *= size
                continue
            if d in reduced:
                dimensions.append(len(sizes))
            sizes.append(refused * size)
            refused = 1
        inputs = [bitcast(i, array(i.element_type, sizes)) for i in inputs_of(reduce)]
        return replaced(reduce, reduce_like(reduce, reduce.shape, inputs, dimensions))


class TransposeDimensionGrouper(VisitPass):
    """`[2,3,4]` transposed to `[4,2,3]` becomes `[6,4]` transposed (`transpose_dimension_grouper.cc`)."""

    name = "transpose-dimension-grouper"
    opcodes = ("transpose",)

    def handle(self, transpose: Instruction) -> bool:
        source = transpose.operand
        found = normalized_transpose(source.shape, transpose.shape, transpose.dimensions)
        if found is None or len(found[0]) == 1 or found[0] == transpose.sizes:
            return False
        sizes, permutation = found
        operand = bitcast(source, array(source.element_type, permute(sizes, inverse(permutation))))
        grouped = make.transpose(transpose, operand, permutation, array(source.element_type, sizes))
        return replaced(transpose, add(transpose, "bitcast", transpose.shape, [grouped]))


class ReductionDegenerateDimRemover(VisitPass):
    """`reduction-degenerate-dim-remover`: the inputs become bitcasts, and so does what reduces nothing
    (`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`)."""

    name = "reduction-degenerate-dim-remover"
    opcodes = ("reduce",)

    def handle(self, reduce: Instruction) -> bool:
        sizes = reduce.operand.sizes
        if 1 not in sizes:
            return False
        remaining = [d for d, size in enumerate(sizes) if size != 1]
        dimensions = [k for k, d in enumerate(remaining) if d in reduce.dimensions]
        inputs, results = inputs_of(reduce), reduce.shape.results
        if not dimensions:
            return replaced(reduce, add(reduce, "bitcast", results[0], [inputs[0]]))
        flat = [added(i, "bitcast", without_ones(i.shape), [i]) for i in inputs]
        shape = Shape.maybe_tuple_of([without_ones(r) for r in results])
        return replaced_through_bitcasts(reduce, reduce_like(reduce, shape, flat, dimensions))


class ReductionLayoutNormalizer(VisitPass):
    """`reduction-layout-normalizer`: dimensions are renumbered as they lie in memory
    (`xla/backends/gpu/transforms/reduction_layout_normalizer.cc`). A reduction of several arrays is made
    again even where nothing is to be renumbered, as by XLA."""

    name = "reduction-layout-normalizer"
    opcodes = ("reduce",)

    def handle(self, reduce: Instruction) -> bool:
        inputs, results = inputs_of(reduce), reduce.shape.results
        first = inputs[0].shape
        if any(i.minor_to_major != first.minor_to_major for i in inputs):
            return False
        if len(inputs) == 1 and first.is_row_major:
            return False
        major_to_minor = first.minor_to_major[::-1]
        reduced = frozenset(reduce.dimensions)
        remaining = [d for d in range(first.rank) if d not in reduced]
        dimensions = [k for k, d in enumerate(major_to_minor) if d in reduced]
        # What is kept, in the order of the input's memory, by its number in the result.
        order = tuple(remaining.index(d) for d in major_to_minor if d not in reduced)
        shapes = [permuted(result, order) for result in results]
        plain = [i if i.shape.is_row_major else add(i, "bitcast", physical(i.shape), [i]) for i in inputs]
        return replaced_through_bitcasts(
            reduce, reduce_like(reduce, Shape.maybe_tuple_of(shapes), plain, dimensions)
        )


class ReductionSplitter(VisitPass):
    """The largest dimension first, others after (`xla/backends/gpu/transforms/reduction_splitter.cc`)."""

    name = "reduction-splitter"
    opcodes = ("reduce",)
    explained = Explained(SPLIT_DIMENSIONS)
    device: DeviceDescription

    def handle(self, reduce: Instruction) -> bool:
        dimensions = reduce.dimensions
        if has_own_emitter(reduce, self.device) or len(dimensions) < 2 or not reduce.is_array:
            return False
        operand = reduce.operand
        sizes = operand.sizes
        largest = max(dimensions, key=lambda d: sizes[d])
        left = [size for d, size in enumerate(sizes) if d != largest]
        first = reduce_like(reduce, array(reduce.element_type, left), [operand], [largest])
        rest = [d - (d > largest) for d in dimensions if d != largest]
        return replaced(reduce, reduce_like(reduce, reduce.shape, [first], rest))


class TreeReductionRewriter(VisitPass):
    """`tree-reduction-rewriter`: a long dimension `k` becomes `k1 x k2`, padded where it does not divide
    (`xla/backends/gpu/transforms/tree_reduction_rewriter.cc`)."""

    name = "tree-reduction-rewriter"
    opcodes = ("reduce",)
    explained = Explained(LONG_SUM_ON_GPU)
    device: DeviceDescription

    def handle(self, reduce: Instruction) -> bool:
        if not has_own_emitter(reduce, self.device):
            return False
        kind = kind_of(reduce)
        dimensions = sorted(reduce.dimensions)
        if is_race_free(self.device, kind) or len(dimensions) > 2:
            return False
        if kind.is_row and kind.sizes[0] > RACE_FREE_ROWS:
            minor, inputs = dimensions[-1], inputs_of(reduce)  # `RewriteBatchDimensionLargerThanTile`
            shape = Shape.maybe_tuple_of([without(i.shape, [minor]) for i in inputs])
            first = reduce_like(reduce, shape, inputs, [minor])
            return replaced(reduce, reduce_like(reduce, reduce.shape, _elements(reduce, first), [0]))
        k1, k2 = _factors(reduce.operand.sizes[dimensions[-1]], kind, self.device)
        return _split(reduce, dimensions, k1, k2)


def _factors(size: int, kind: Reduction, device: DeviceDescription) -> tuple[int, int]:
    """k1 and k2 near the square root of `size`, with the least padding (`ComputeSplitParams`)."""
    bound = race_free_bound(device, kind)
    k2 = min(math.isqrt(size), bound)
    padding = (k2 - size % k2) % k2
    k1 = (size + padding) // k2
    for i in range(k2 - 1, k2 // 2, -1):
        other = (i - size % i) % i
        if other < padding or (other == padding and i & (i - 1) == 0):
            padding = other
            k1 = (size + other) // i
    k2 = (size + padding) // k1
    return (k2, k1) if _is_better_swapped(k1, k2, size, bound, kind.is_row) else (k1, k2)


def _is_better_swapped(
    k1: int,
    k2: int,
    size: int,
    bound: int,
    is_row: bool,
) -> bool:
    """`ShouldSwapInnerAndOuterReducedMinorDimension`: the longer step goes first if it may."""
    if k1 > bound:
        return False
    if not is_row:
        return True
    if k2 % 2 == 0 and size % 2 == 0:
        return k2 * 2 < k1 or k1 % 2 == 0
    return size % 2 == 0 or k1 % 2 != 0


def _split(reduce: Instruction, dimensions: list[int], k1: int, k2: int) -> bool:
    """Pad, view as `k1 x k2`, reduce `k2`, then `k1` (`SplitReductionDimension`)."""
    split = dimensions[-1]
    inputs = inputs_of(reduce)
    sizes = list(inputs[0].sizes)
    if sizes[split] != k1 * k2:
        pairs = zip(inputs, initial_values_of(reduce), strict=True)
        inputs = [make.padded(i, i, 0, k1 * k2 - sizes[split], split, value=zero) for i, zero in pairs]
    viewed = [*sizes[:split], k1, k2, *sizes[split + 1 :]]
    inner = [d + 1 if d == split else d for d in dimensions]
    left = [size for d, size in enumerate(viewed) if d not in inner]
    views = [bitcast(i, array(i.element_type, viewed)) for i in inputs]
    shape = Shape.maybe_tuple_of([array(i.element_type, left) for i in inputs])
    first = reduce_like(reduce, shape, views, inner)
    outer = split - (len(dimensions) - 1)
    return replaced(reduce, reduce_like(reduce, reduce.shape, _elements(reduce, first), [outer]))


def _elements(reduce: Instruction, first: Instruction) -> Instructions:
    if not first.is_tuple:
        return [first]
    return [make.bare_element(reduce, first, k) for k in range(first.tuple_size)]


class ReduceDecomposer(Pass):
    """Not where an emitter of its own takes any layout (`hlo/transforms/expanders/reduce_decomposer.cc`)."""

    device: DeviceDescription | None = None
    name = "reduce-decomposer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        equalized = visit_module(module, ["reduce"], _equalize, recorder)
        return visit_module(module, ["reduce"], self._handle, recorder) or equalized

    def _handle(self, reduce: Instruction) -> bool:
        is_free = self.device is not None and has_own_emitter(reduce, self.device)
        return not is_free and _decompose(reduce)


def _default_shapes(reduce: Instruction, inputs: Instructions) -> tuple[Shape, ...]:
    """The shapes that the results have without a layout of their own (`InferReduceShape`)."""
    return tuple(without(i.shape, reduce.dimensions) for i in inputs)


def _equalize(reduce: Instruction) -> bool:
    """All inputs lie as the first one does (`VariadicReductionLayoutEqualizer`)."""
    inputs = inputs_of(reduce)
    order = inputs[0].minor_to_major
    new = [
        i if i.minor_to_major == order else make.copied(i, with_layout(i.element_type, i.sizes, order))
        for i in inputs
    ]
    if new == inputs:
        return False
    shape = Shape.maybe_tuple_of(_default_shapes(reduce, new))
    return replaced(reduce, reduce_like(reduce, shape, new, reduce.dimensions))


def _decompose(reduce: Instruction) -> bool:
    inputs = inputs_of(reduce)
    wanted, expected = reduce.shape.results, _default_shapes(reduce, inputs)
    if [s.key for s in wanted] == [s.key for s in expected]:
        return False
    new = reduce_like(reduce, Shape.maybe_tuple_of(expected), inputs, reduce.dimensions)
    if reduce.is_tuple:
        parts = [make.copied(make.get_tuple_element(reduce, new, k), shape) for k, shape in enumerate(wanted)]
        return replaced(reduce, make.tuple_of(reduce, parts))
    (shape,) = wanted
    if reduce.user_count == 1 and reduce.user.opcode == "convert":
        # The two stay side by side.
        convert = reduce.user
        wide = make.convert(convert, new, convert.element_type)
        return replaced(convert, make.copied(wide, shape.with_element_type(convert.element_type)))
    return replaced(reduce, make.copied(new, shape))
