"""One product in the place of several that share an operand
(`MergeCluster`, `xla/hlo/transforms/simplifiers/dot_merger.cc`).

Dimensions of the new product: of the shared operand as in its source, of the other one batch, free and
contracting, the last two exchanged where the first product has its free dimension last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.attributes.window import SliceRange, SliceRanges
from hlofuse.ir.graph import Instruction
from hlofuse.ir.removing import set_attribute
from hlofuse.passes.common.make import added, derived, numbers
from hlofuse.passes.common.shapes import array
from hlofuse.passes.dot.dot_operand import (
    BATCH,
    CONTRACTING,
    FREE,
    DotOperand,
    dimensions_of,
    product_sizes,
)
from hlofuse.passes.dot.shape_tracker import NotTracked, ShapeTracker, zipped


@dataclass(frozen=True)
class Usage:
    """A product seen from one of its operands (`DotOperandUsage`)."""

    dot: Instruction
    side: int
    """Which operand is shared."""
    source: Instruction
    """What the shared operand is made of by reshapes and transposes."""
    other_source: Instruction
    size: int
    """Elements in the free dimensions of the other operand."""

    @property
    def shared(self) -> Instruction:
        return self.dot.operands[self.side]

    @property
    def other(self) -> Instruction:
        return self.dot.operands[1 - self.side]

    @property
    def shared_dimensions(self) -> DotOperand:
        return DotOperand.of(self.dot, self.side)

    @property
    def other_dimensions(self) -> DotOperand:
        return DotOperand.of(self.dot, 1 - self.side)


def merge(group: Sequence[Usage]) -> tuple[Instruction, list[Instruction]]:
    """The merged product, and for each old one what stands for it. NotTracked where XLA would fail."""
    first = group[0]
    on_left = 2 * sum(usage.side == 0 for usage in group) > len(group)
    shared_dims = _without_waste(_at_source(first))
    shared = first.source
    if shared.shape.dimensions != shared_dims.sizes:
        shared = added(shared, "reshape", array(shared.shape.element_type, shared_dims.sizes), [shared])
    free_last = first.other_dimensions.categories()[-1:] != (CONTRACTING,)
    others, dims = [], []
    for usage in group:
        tracker, other_dims = _other_operand(usage, shared, shared_dims, free_last)
        dims.append(other_dims)
        others.append(tracker)
    chained = [tracker.chain(usage.other_source) for tracker, usage in zip(others, group, strict=True)]
    place = dims[0].groups[FREE][0]
    sizes = list(dims[0].sizes)
    sizes[place] = sum(d.sizes[place] for d in dims)
    shape = array(chained[0].shape.element_type, sizes)
    whole = derived(shared, "concatenate", shape, chained, dimensions=numbers([place]))
    product = _product(shared, whole, shared_dims, DotOperand(tuple(sizes), dims[0].groups), on_left, group)
    results, start = [], 0
    for usage, other, other_dims in zip(group, chained, dims, strict=True):
        size = other_dims.sizes[place]
        cut = product.shape.rank - 1 if on_left else len(shared_dims.groups[BATCH])
        part = _slice(product, cut, start, size)
        start += size
        back = _result(usage, shared, shared_dims, other, other_dims, on_left)
        results.append(back.chain(part))
    return product, results


def _at_source(usage: Usage) -> DotOperand:
    """What the dimensions of the source are for (`DetermineTargetSharedDims`)."""
    tracker = ShapeTracker.siblings(usage.shared, usage.source)
    dims = usage.shared_dimensions
    batch, contracting = tracker.mapped(dims.groups[BATCH]), tracker.mapped(dims.groups[CONTRACTING])
    if batch is None or contracting is None:
        raise NotTracked
    sizes = tuple(usage.source.shape.dimensions)
    free = tuple(d for d in range(len(sizes)) if d not in batch and d not in contracting)
    return DotOperand(sizes, (tuple(batch), free, tuple(contracting)))


def _without_waste(dims: DotOperand) -> DotOperand:
    """No dimension of size 1, and contracting ones in a row are one (`CreateSharedOperand`)."""
    dims = dims.without_ones()
    return dims.collapsed(CONTRACTING) if dims.is_consecutive(CONTRACTING) else dims


def _of_category(before: DotOperand, after: DotOperand, tracker: ShapeTracker, category: int) -> ShapeTracker:
    """How the dimensions of a category become those of the same category (`BuildIndicesTracker`)."""
    places = after.groups[category]
    out = tracker.narrow(before.groups[category])
    out.reshape([after.sizes[d] for d in sorted(places)])
    out.transpose(inverse(tuple(sorted(range(len(places)), key=lambda k: places[k]))))
    return out


def _other_operand(
    usage: Usage, shared: Instruction, shared_dims: DotOperand, free_last: bool
) -> tuple[ShapeTracker, DotOperand]:
    """From the source of the operand that is not shared to what is concatenated (`TransformConcatDims`)."""
    before, other = usage.shared_dimensions, usage.other_dimensions
    tracker = ShapeTracker.siblings(usage.shared, shared)
    free = ShapeTracker(other.group_sizes(FREE))
    free.reshape([usage.size])
    out = zipped(
        [
            _of_category(before, shared_dims, tracker, BATCH),
            free,
            _of_category(before, shared_dims, tracker, CONTRACTING),
        ]
    )
    out.transpose_first([d for group in other.groups for d in group])
    batch, rank = len(shared_dims.groups[BATCH]), len(out.result)
    groups = (tuple(range(batch)), (batch,), tuple(range(batch + 1, rank)))
    dims = DotOperand(out.result, groups)
    if free_last:
        permutation = [*range(batch), *range(batch + 1, rank), batch]
        out.transpose(permutation)
        dims = dims.permuted(permutation)
    whole = ShapeTracker.between(usage.other_source, usage.other)
    whole.extend(out)
    return whole, dims


def _product(
    shared: Instruction,
    other: Instruction,
    shared_dims: DotOperand,
    other_dims: DotOperand,
    on_left: bool,
    group: Sequence[Usage],
) -> Instruction:
    sides = [(shared, shared_dims), (other, other_dims)]
    (left, left_dims), (right, right_dims) = sides if on_left else sides[::-1]
    first = group[0].dot
    shape = array(first.shape.element_type, product_sizes(left_dims, right_dims))
    given = first.attributes.given("operand_precision", "algorithm")
    out = derived(left, "dot", shape, [left, right], **dimensions_of(left_dims, right_dims).raw(), **given)
    if (named := next((usage.dot for usage in group if usage.dot.op_name), None)) is not None:
        set_attribute(out, "metadata", named.attributes.raw("metadata") or "{}")
    return out


def _slice(product: Instruction, dimension: int, start: int, size: int) -> Instruction:
    sizes = list(product.shape.dimensions)
    sizes[dimension] = size
    ranges = SliceRanges(
        SliceRange(start, start + size, 1) if d == dimension else SliceRange(0, n, 1)
        for d, n in enumerate(product.shape.dimensions)
    )
    return derived(product, "slice", array(product.shape.element_type, sizes), [product], slice=str(ranges))


def _result(
    usage: Usage,
    shared: Instruction,
    shared_dims: DotOperand,
    other: Instruction,
    other_dims: DotOperand,
    on_left: bool,
) -> ShapeTracker:
    """From a part of the merged product to the old one (`BuildOutputShapeTracker`)."""
    old_shared, old_other = usage.shared_dimensions, usage.other_dimensions
    of_shared = ShapeTracker.siblings(shared, usage.shared)
    of_other = ShapeTracker.siblings(other, usage.other)
    batch = _of_category(shared_dims, old_shared, of_shared, BATCH)
    if batch != _of_category(other_dims, old_other, of_other, BATCH):
        raise NotTracked
    parts = [
        _of_category(shared_dims, old_shared, of_shared, FREE),
        _of_category(other_dims, old_other, of_other, FREE),
    ]
    out = zipped([batch, *(parts if on_left else parts[::-1])])
    if on_left != (usage.side == 0):
        count = len(old_shared.groups[BATCH])
        offset = len((old_shared if on_left else old_other).groups[FREE])
        rank = len(out.result)
        out.transpose([*range(count), *range(count + offset, rank), *range(count, count + offset)])
    return out
