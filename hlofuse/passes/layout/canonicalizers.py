"""Reshapes and broadcasts that keep memory in order."""

from collections.abc import Sequence

from hlofuse.cost.gpu.shapes import inverse, reshape_is_bitcast
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.calls import set_called
from hlofuse.passes.common.make import added, bitcast, copied, derived, numbers, transposed
from hlofuse.passes.common.rewriting import VisitPass, expand_each, replaced
from hlofuse.passes.common.shapes import aligned, array, descending, permute, with_layout
from hlofuse.trace import Recorder


class ReshapeDecomposer(VisitPass):
    """`reshape-decomposer`: a bitcast where the layouts allow it, else with a copy ahead, behind, or both
    (`xla/hlo/transforms/expanders/reshape_decomposer.cc`)."""

    name = "reshape-decomposer"
    opcodes = ("reshape",)

    def handle(self, reshape: Instruction) -> bool:
        operand = reshape.operands[0]
        source, result = operand.shape, reshape.shape
        if reshape_is_bitcast(source, result):
            return replaced(reshape, bitcast(operand, result))
        if (before := aligned(result, source)) is not None:
            return replaced(reshape, bitcast(copied(operand, before), result))
        if (after := aligned(source, result)) is not None:
            return replaced(reshape, copied(bitcast(operand, after), result))
        plain = copied(operand, descending(source))
        return replaced(reshape, copied(bitcast(plain, descending(result)), result))


class BroadcastCanonicalizer(Pass):
    """`broadcast_canonicalizer`: what is broadcast is transposed first
    (`xla/hlo/transforms/simplifiers/broadcast_canonicalizer.cc`)."""

    name = "broadcast_canonicalizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [
            x
            for computation in module.non_fusion_computations()
            for x in computation.post_order()
            if x.opcode == "broadcast" and list(x.dimensions) != sorted(x.dimensions)
        ]
        return expand_each(found, _canonicalize, recorder)


def _canonicalize(broadcast: Instruction) -> None:
    (operand,) = broadcast.operands
    places = list(broadcast.dimensions)
    permutation = [places.index(d) for d in sorted(places)]
    shape = operand.shape
    sizes = [shape.dimensions[d] for d in permutation]
    moved = transposed(operand, permutation, with_layout(shape.element_type, sizes, shape.minor_to_major))
    result = array(shape.element_type, broadcast.shape.dimensions)
    replaced(
        broadcast,
        added(moved, "broadcast", result, [moved], like=operand, dimensions=numbers(sorted(places))),
    )


def normalized_scatter(scatter: Instruction, inputs: Sequence[Instruction]) -> Instruction:
    """`inputs` are the row-major operands (`LayoutNormalizationVisitor::HandleScatter`). Window dimensions
    may come out unsorted."""
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
