"""Products of groups of rows become plain ones (`xla/hlo/transforms/expanders/ragged_dot_rewriter.cc`).

The rows are laid out once for each group, with zeros in place of those that are of other groups.
"""

from collections.abc import Sequence

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.attributes.window import SliceRange, SliceRanges, Window, WindowDimension
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import NotRepresentable, Pass, expand_each
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.make import added, numbers, reducer, zero, zeros
from hlofuse.passes.common.shapes import array, numbers_of, with_dimensions
from hlofuse.trace import Recorder


class RaggedDotRewriter(Pass):
    """`ragged_dot_rewriter`, where no library takes such products."""

    name = "ragged_dot_rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [i for c in module.non_fusion_computations() for i in c if i.opcode == "ragged-dot"]
        return expand_each(found, lambda x: replace_instruction(x, _as_dot(x), has_side_effect), recorder)


def _as_dot(x: Instruction) -> Instruction:
    """`RaggedToGeneral`."""
    lhs, rhs, sizes = x.operands
    dims = DotDimensions.of(x)
    (ragged,) = numbers_of(x, "lhs_ragged_dims")
    place = sizes.shape.rank - 1
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
    if (precision := x.attributes.raw("operand_precision")) is not None:
        attributes["operand_precision"] = precision
    return added(x, "dot", x.shape, [lhs, rhs], like=x, raw_attributes=attributes)


def _next(dimensions: Sequence[int]) -> tuple[int, ...]:
    return tuple(d + 1 for d in dimensions)


def _dense(x: Instruction, sizes: Instruction, place: int, ragged: int) -> Instruction:
    """`x` once for each group, a dimension at `place`, zero where a row is of another (`RaggedToDense`)."""
    ends = _running_sum(sizes)
    groups = sizes.shape.dimensions[-1]
    kind = sizes.shape.element_type
    bounds = [*sizes.shape.dimensions[:-1], groups - 1]
    ranges = SliceRanges(SliceRange(0, n, 1) for n in bounds)
    group_starts = added(x, "slice", with_dimensions(ends.shape, bounds), [ends], slice=str(ranges))
    none = zeros(x, with_dimensions(ends.shape, [*bounds[:-1], 1]))
    starts = added(
        x, "concatenate", sizes.shape, [none, group_starts], dimensions=numbers([sizes.shape.rank - 1])
    )

    laid = [*x.shape.dimensions[:place], groups, *x.shape.dimensions[place:]]
    wide, mask = array(kind, laid), array("pred", laid)
    of_sizes = numbers(range(sizes.shape.rank))
    first = added(x, "broadcast", wide, [starts], dimensions=of_sizes)
    count = added(x, "iota", array(kind, [x.shape.dimensions[ragged]]), [], iota_dimension="0")
    row = added(x, "broadcast", wide, [count], dimensions=numbers([ragged + 1]))
    is_after = added(x, "compare", mask, [first, row], direction="LE")
    end = added(x, "broadcast", wide, [ends], dimensions=of_sizes)
    is_before = added(x, "compare", mask, [row, end], direction="LT")
    is_in = added(x, "and", mask, [is_after, is_before])

    rows = [d if d < place else d + 1 for d in range(x.shape.rank)]
    each = added(x, "broadcast", array(x.shape.element_type, laid), [x], dimensions=numbers(rows))
    return added(x, "select", each.shape, [is_in, each, zeros(x, each.shape)])


def _running_sum(sizes: Instruction) -> Instruction:
    """The end of each group (`CreateCumulativeSum`)."""
    groups = sizes.shape.dimensions[-1]
    plain = [WindowDimension(1)] * (sizes.shape.rank - 1)
    window = Window((*plain, WindowDimension(groups, padding_low=groups - 1)))
    kind = sizes.shape.element_type
    summed = reducer(sizes, "add", "add", kind)
    start = zero(sizes, kind)
    return added(
        sizes, "reduce-window", sizes.shape, [sizes, start], called=[("to_apply", summed)], window=str(window)
    )


def _moved_first(x: Instruction, dimension: int) -> Instruction:
    """`x` with that dimension and the first swapped (`TransposeIndexToFront`)."""
    if dimension == 0:
        return x
    order = [*range(x.shape.rank)]
    order[0], order[dimension] = dimension, 0
    shape = with_dimensions(x.shape, [x.shape.dimensions[d] for d in order])
    return added(x, "transpose", shape, [x], dimensions=numbers(order))
