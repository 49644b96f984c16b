"""A transpose of a scatter is a scatter into the transposed array (`TryFoldTransposeIntoScatter`)."""

from __future__ import annotations

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make
from hlofuse.passes.common.index_vectors import is_simplified_scatter
from hlofuse.passes.common.shapes import permuted


def fold_transpose_into_scatter(c: Context, transpose: Instruction) -> bool:
    """Of one array, as `scatter_simplifier` leaves it, and read by nothing else."""
    scatter = transpose.operands[0]
    if not c.options.fold_transpose_into_scatter or scatter.opcode != "scatter" or len(scatter.users) != 1:
        return False
    if len(scatter.operands) != 3 or not scatter.shape.dimensions or not is_simplified_scatter(scatter):
        return False
    if scatter.attributes.get("input_batching_dims") or scatter.attributes.get(
        "scatter_indices_batching_dims"
    ):
        return False
    base, indices, update = scatter.operands
    permutation = transpose.dimensions
    turned = _transposed(transpose, base, permutation)
    turned.shape = transpose.shape
    update = _transposed(transpose, update, (0, *(d + 1 for d in permutation)))
    place = inverse(permutation)
    targets = [place[d] for d in scatter.attributes.get("scatter_dims_to_operand_dims", ())]
    new = clone_of(scatter, [turned, indices, update], "scatter")
    new.shape = transpose.shape
    new.attributes = new.attributes.without("sharding", "frontend_attributes").updated(
        scatter_dims_to_operand_dims=make.numbers(targets)
    )
    return c.replace(transpose, computation_of(transpose).add_instruction(new))


def _transposed(at: Instruction, operand: Instruction, permutation: tuple[int, ...]) -> Instruction:
    """`transpose->AddInstruction(CreateTranspose(…))`."""
    shape = permuted(operand.shape, permutation)
    return make.derived(at, "transpose", shape, [operand], dimensions=make.numbers(permutation))
