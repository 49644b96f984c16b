"""Gathers and scatters."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.gathers_of_pads import gather_ahead_of_pad
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array


def handle_gather(c: Context, gather: Instruction) -> None:
    operand, indices = gather.operands
    if operand.shape.element_count == 0:
        c.replace(gather, make.scalar_like(gather, 0))
        return
    if operand.shape.is_effective_scalar:
        scalar = operand
        if operand.shape.dimensions:
            scalar = make.reshape(operand, array(operand.shape.element_type), operand)
        c.replace(gather, make.broadcast(scalar, gather.shape, scalar, ()))
        return
    said = gather.attributes
    if (
        operand.shape.rank == 1
        and operand.shape.dimensions[0] <= c.options.very_small_gather_size
        and said.get("index_vector_dim") == indices.shape.rank
        and len(said.get("collapsed_slice_dims", ())) == 1
    ):
        c.replace(gather, _by_selecting(gather))
        return
    gather_ahead_of_pad(c, gather)


def _by_selecting(gather: Instruction) -> Instruction:
    operand, indices = gather.operands

    def value(k: int) -> Instruction:
        one = make.slice_of(gather, operand, [k], [k + 1])
        scalar = make.reshape(gather, array(operand.shape.element_type), one)
        return make.broadcast(gather, gather.shape, scalar, ())

    result = value(0)
    for k in range(operand.shape.dimensions[0]):
        mask = make.compare(gather, "GE", indices, make.scalar_like(indices, k))
        mask.shape = gather.shape.with_element_type("pred")
        result = make.add(gather, "select", gather.shape, [mask, value(k), result])
    return result


def handle_scatter(c: Context, scatter: Instruction) -> None:
    count = len(scatter.operands) // 2
    bases, updates = scatter.operands[:count], scatter.operands[count + 1 :]
    if all(u.shape.element_count == 0 for u in updates):
        if count == 1:
            c.replace_if_compatible(scatter, bases[0])
        return
    indices = scatter.operands[count]
    if (
        count == 1
        and indices.shape.element_count == 0
        and c.same_shape(scatter.shape, bases[0].shape)
        and c.same_shape(scatter.shape, updates[0].shape)
    ):
        function = scatter.called_computations[0]
        numbers = make.numbers(range(scatter.shape.rank))
        new = make.add(
            scatter,
            "map",
            scatter.shape,
            [bases[0], updates[0]],
            called=[("to_apply", function)],
            dimensions=numbers,
        )
        c.replace(scatter, new)
