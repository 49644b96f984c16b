"""A scatter over row-major arrays (`LayoutNormalizationVisitor::HandleScatter`)."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.calls import set_called
from hlofuse.passes.common.make import derived, numbers
from hlofuse.passes.common.shapes import permute


def normalized_scatter(scatter: Instruction, inputs: Sequence[Instruction]) -> Instruction:
    """`inputs` are the row-major operands. Window dimensions may come out unsorted."""
    count = len(inputs) // 2
    operand, indices, update = scatter.operands[0], scatter.operands[count], scatter.operands[count + 1]
    to_memory = operand.shape.minor_to_major[::-1]
    in_operand = inverse(to_memory)
    in_indices = inverse(indices.shape.minor_to_major[::-1])
    in_update = inverse(update.shape.minor_to_major[::-1])
    a = scatter.attributes
    window = iter(in_update[d] for d in a.get("update_window_dims", ()))
    inserted = set(a.get("inserted_window_dims", ()))
    places = [-1 if d in inserted else next(window) for d in range(operand.shape.rank)]
    moved = permute(places, to_memory)
    raw = dict(a.raw_items)
    raw["update_window_dims"] = numbers(p for p in moved if p >= 0)
    raw["inserted_window_dims"] = numbers(d for d, p in enumerate(moved) if p < 0)
    raw["scatter_dims_to_operand_dims"] = numbers(in_operand[d] for d in a["scatter_dims_to_operand_dims"])
    at = int(a["index_vector_dim"])
    raw["index_vector_dim"] = str(in_indices[at] if at < len(in_indices) else at)
    shapes = [i.shape for i in inputs[:count]]
    shape = Shape.tuple_of(shapes) if scatter.shape.is_tuple else shapes[0]
    for name in ("metadata", "sharding", "frontend_attributes", "control-predecessors"):
        raw.pop(name, None)
    new = derived(scatter, "scatter", shape, inputs, **raw)
    set_called(new, scatter.called)
    return new
