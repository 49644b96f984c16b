"""Passes that make several reductions of one."""

import math
from dataclasses import dataclass

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.reductions import Reduction, is_race_free, race_free_bound, race_free_rows
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.make import added, bitcast
from hlofuse.passes.common.rewriting import Explained, VisitPass, replaced, visit_module
from hlofuse.passes.common.shapes import array, with_layout, without
from hlofuse.passes.gpu.reduction_dimensions import (
    has_own_emitter,
    initial_values_of,
    inputs_of,
    kind_of,
    reduce_like,
    results_of,
)
from hlofuse.rules.rewrites import LONG_SUM_ON_GPU, SPLIT_DIMENSIONS
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ReductionSplitter(Pass):
    """`reduction-splitter`: the largest dimension first, the others in a second reduction
    (`xla/backends/gpu/transforms/reduction_splitter.cc`)."""

    name = "reduction-splitter"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reduce"], self._split, recorder, explained=Explained(SPLIT_DIMENSIONS))

    def _split(self, reduce: Instruction) -> bool:
        dimensions = reduce.dimensions
        if has_own_emitter(reduce, self.device) or len(dimensions) < 2 or not reduce.shape.is_array:
            return False
        operand = reduce.operands[0]
        sizes = operand.shape.dimensions
        largest = max(dimensions, key=lambda d: sizes[d])
        left = [size for d, size in enumerate(sizes) if d != largest]
        first = reduce_like(reduce, array(reduce.shape.element_type, left), [operand], [largest])
        rest = [d - (d > largest) for d in dimensions if d != largest]
        return replaced(reduce, reduce_like(reduce, reduce.shape, [first], rest))


@dataclass(frozen=True)
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
        if kind.is_row and kind.sizes[0] > race_free_rows():
            return _minor_dimension_first(reduce, dimensions[-1])
        k1, k2 = _factors(reduce.operands[0].shape.dimensions[dimensions[-1]], kind, self.device)
        return _split(reduce, dimensions, k1, k2)


def _minor_dimension_first(reduce: Instruction, minor: int) -> bool:
    """`RewriteBatchDimensionLargerThanTile`."""
    inputs = inputs_of(reduce)
    shape = Shape.maybe_tuple_of([without(i.shape, [minor]) for i in inputs])
    first = reduce_like(reduce, shape, inputs, [minor])
    return replaced(reduce, reduce_like(reduce, reduce.shape, _elements(reduce, first), [0]))


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


def _is_better_swapped(k1: int, k2: int, size: int, bound: int, is_row: bool) -> bool:
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
    sizes = list(inputs[0].shape.dimensions)
    if sizes[split] != k1 * k2:
        more = k1 * k2 - sizes[split]
        sizes[split] = k1 * k2
        padding = "x".join(f"0_{more}" if d == split else "0_0" for d in range(len(sizes)))
        inputs = [
            added(i, "pad", array(i.shape.element_type, sizes), [i, zero], like=i, padding=padding)
            for i, zero in zip(inputs, initial_values_of(reduce), strict=True)
        ]
    viewed = [*sizes[:split], k1, k2, *sizes[split + 1 :]]
    inner = [d + 1 if d == split else d for d in dimensions]
    left = [size for d, size in enumerate(viewed) if d not in inner]
    views = [bitcast(i, array(i.shape.element_type, viewed)) for i in inputs]
    shape = Shape.maybe_tuple_of([array(i.shape.element_type, left) for i in inputs])
    first = reduce_like(reduce, shape, views, inner)
    outer = split - (len(dimensions) - 1)
    return replaced(reduce, reduce_like(reduce, reduce.shape, _elements(reduce, first), [outer]))


def _elements(reduce: Instruction, first: Instruction) -> list[Instruction]:
    """The results one by one."""
    if not first.shape.is_tuple:
        return [first]
    return [
        added(reduce, "get-tuple-element", shape, [first], index=str(k))
        for k, shape in enumerate(first.shape.tuple_shapes)
    ]


@dataclass(frozen=True)
class ReduceDecomposer(Pass):
    """`reduce-decomposer`; what has an emitter of its own may leave its result in another layout
    (`xla/hlo/transforms/expanders/reduce_decomposer.cc`)."""

    device: DeviceDescription
    name = "reduce-decomposer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        equalized = visit_module(module, ["reduce"], _equalize, recorder)
        return visit_module(module, ["reduce"], self._handle, recorder) or equalized

    def _handle(self, reduce: Instruction) -> bool:
        return not has_own_emitter(reduce, self.device) and _decompose(reduce)


def _left(reduce: Instruction, inputs: list[Instruction]) -> tuple[Shape, ...]:
    """The shapes that the results have without a layout of their own (`InferReduceShape`)."""
    return tuple(without(i.shape, reduce.dimensions) for i in inputs)


def _equalize(reduce: Instruction) -> bool:
    """All inputs lie as the first one does (`VariadicReductionLayoutEqualizer`)."""
    inputs = inputs_of(reduce)
    order = inputs[0].shape.minor_to_major
    new = [
        i
        if i.shape.minor_to_major == order
        else make.copied(i, with_layout(i.shape.element_type, i.shape.dimensions, order))
        for i in inputs
    ]
    if new == inputs:
        return False
    shape = Shape.maybe_tuple_of(_left(reduce, new))
    return replaced(reduce, reduce_like(reduce, shape, new, reduce.dimensions))


def _decompose(reduce: Instruction) -> bool:
    inputs = inputs_of(reduce)
    wanted, expected = results_of(reduce), _left(reduce, inputs)
    if [s.key for s in wanted] == [s.key for s in expected]:
        return False
    new = reduce_like(reduce, Shape.maybe_tuple_of(expected), inputs, reduce.dimensions)
    if reduce.shape.is_tuple:
        parts = [make.copied(make.get_tuple_element(reduce, new, k), shape) for k, shape in enumerate(wanted)]
        return replaced(reduce, make.tuple_of(reduce, parts))
    (shape,) = wanted
    if len(reduce.users) == 1 and reduce.users[0].opcode == "convert":
        # The two stay side by side.
        convert = reduce.users[0]
        wide = make.convert(convert, new, convert.shape.element_type)
        return replaced(convert, make.copied(wide, shape.with_element_type(convert.shape.element_type)))
    return replaced(reduce, make.copied(new, shape))
