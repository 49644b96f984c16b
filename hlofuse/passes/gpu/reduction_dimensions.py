"""Passes that leave reductions fewer dimensions, in the order they lie in memory."""

from collections.abc import Iterable, Sequence

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.reductions import Reduction, faster_than_elemental, reduction_of
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.make import added, bitcast, numbers
from hlofuse.passes.common.rewriting import Explained, VisitPass, replaced
from hlofuse.passes.common.shapes import array, physical, with_layout, without_ones
from hlofuse.rules.rewrites import GROUPED_DIMENSIONS


def inputs_of(reduce: Instruction) -> list[Instruction]:
    """`HloReduceInstruction::inputs`."""
    return reduce.operands[: len(reduce.operands) // 2]


def initial_values_of(reduce: Instruction) -> list[Instruction]:
    return reduce.operands[len(reduce.operands) // 2 :]


def results_of(reduce: Instruction) -> tuple[Shape, ...]:
    """The shape of each result."""
    return reduce.shape.tuple_shapes if reduce.shape.is_tuple else (reduce.shape,)


def kind_of(reduce: Instruction) -> Reduction:
    """`GetReductionKindAndContiguousComponents`."""
    return reduction_of(reduce.operands[0].shape, reduce.dimensions)[0]


def has_own_emitter(reduce: Instruction, device: DeviceDescription) -> bool:
    """`IsReductionFromOrToContiguousDimensions`."""
    kind, together = reduction_of(reduce.operands[0].shape, reduce.dimensions)
    return together and faster_than_elemental(device, kind)


def reduce_like(
    reduce: Instruction,
    shape: Shape,
    inputs: Sequence[Instruction],
    dimensions: Iterable[int],
) -> Instruction:
    """The same reduction of other inputs over other dimensions, added to its computation."""
    return added(
        reduce,
        "reduce",
        shape,
        [*inputs, *initial_values_of(reduce)],
        like=reduce,
        dimensions=numbers(dimensions),
        called=list(reduce.called),
    )


def replaced_through_bitcasts(reduce: Instruction, new: Instruction) -> bool:
    """`new` takes the place of `reduce`, each result made a bitcast to the old shape where shapes differ."""
    if new.shape.key == reduce.shape.key:
        return replaced(reduce, new)
    if not new.shape.is_tuple:
        return replaced(reduce, added(reduce, "bitcast", reduce.shape, [new], like=reduce))
    parts = []
    for k, (shape, was) in enumerate(zip(new.shape.tuple_shapes, reduce.shape.tuple_shapes, strict=True)):
        part = added(reduce, "get-tuple-element", shape, [new], index=str(k))
        parts.append(bitcast(part, was))
    return replaced(reduce, added(reduce, "tuple", reduce.shape, parts, like=reduce))


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
        sizes: list[int] = []
        dimensions: list[int] = []
        refused = 1
        for d, size in enumerate(reduce.operands[0].shape.dimensions):
            if d in reduced and d + 1 in reduced:
                refused *= size
                continue
            if d in reduced:
                dimensions.append(len(sizes))
            sizes.append(refused * size)
            refused = 1
        inputs = [bitcast(i, array(i.shape.element_type, sizes)) for i in inputs_of(reduce)]
        return replaced(reduce, reduce_like(reduce, reduce.shape, inputs, dimensions))


class ReductionDegenerateDimRemover(VisitPass):
    """`reduction-degenerate-dim-remover`: the inputs become bitcasts, and so does what reduces nothing
    (`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`)."""

    name = "reduction-degenerate-dim-remover"
    opcodes = ("reduce",)

    def handle(self, reduce: Instruction) -> bool:
        sizes = reduce.operands[0].shape.dimensions
        if 1 not in sizes:
            return False
        remaining = [d for d, size in enumerate(sizes) if size != 1]
        dimensions = [k for k, d in enumerate(remaining) if d in reduce.dimensions]
        inputs, results = inputs_of(reduce), results_of(reduce)
        if not dimensions:
            return replaced(reduce, added(reduce, "bitcast", results[0], [inputs[0]], like=reduce))
        flat = [added(i, "bitcast", without_ones(i.shape), [i]) for i in inputs]
        shape = Shape.maybe_tuple_of([without_ones(r) for r in results])
        return replaced_through_bitcasts(reduce, reduce_like(reduce, shape, flat, dimensions))


class ReductionLayoutNormalizer(VisitPass):
    """`reduction-layout-normalizer`: dimensions are renumbered as they lie in memory
    (`xla/backends/gpu/transforms/reduction_layout_normalizer.cc`).

    A reduction of several arrays is made again even where nothing is to be renumbered, as by XLA.
    """

    name = "reduction-layout-normalizer"
    opcodes = ("reduce",)

    def handle(self, reduce: Instruction) -> bool:
        inputs, results = inputs_of(reduce), results_of(reduce)
        first = inputs[0].shape
        if any(i.shape.minor_to_major != first.minor_to_major for i in inputs):
            return False
        if len(inputs) == 1 and first.is_row_major:
            return False
        major_to_minor = first.minor_to_major[::-1]
        reduced = frozenset(reduce.dimensions)
        remaining = [d for d in range(first.rank) if d not in reduced]
        dimensions = [k for k, d in enumerate(major_to_minor) if d in reduced]
        # What is kept, in the order of the input's memory, by its number in the result.
        order = tuple(remaining.index(d) for d in major_to_minor if d not in reduced)
        number = inverse(order)
        shapes = []
        for result in results:
            sizes = [result.dimensions[d] for d in order]
            shapes.append(with_layout(result.element_type, sizes, [number[d] for d in result.minor_to_major]))
        plain = [
            i if i.shape.is_row_major else added(i, "bitcast", physical(i.shape), [i], like=i) for i in inputs
        ]
        return replaced_through_bitcasts(
            reduce, reduce_like(reduce, Shape.maybe_tuple_of(shapes), plain, dimensions)
        )
