"""Products that had to be written as such of matrices: a reshape behind each changed nothing."""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.fusions import LAYOUT_ONLY, has_dot
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.products.merged_dots import operands_of_part
from hlofuse.pipelines.users.products.reshaped_products import (
    PRODUCTS,
    computed_by,
    is_bitcast_of_product,
    is_filled_for_split,
    is_product,
    split_of,
)

_ANY = "..."
"""What an einsum calls dimensions that all have in front."""
_EINSUM = re.compile(r"[/(]((?:\.\.\.)?[a-zA-Z]+),((?:\.\.\.)?[a-zA-Z]+)->((?:\.\.\.)?[a-zA-Z]*)[/)]")
_MATRIX = 2
_PRODUCT = "dot_general"


def with_last_in_place_of_no_reshape(product: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a product with the last in front."""
    return last_in_front(users) if had_no_reshape(product, users) else users


def had_no_reshape(product: Instruction, users: list[Instruction]) -> bool:
    """Did the last of the `users` take the place of a reshape?

    DotDecomposer (`xla/hlo/transforms/expanders/dot_decomposer.cc`) gives a product that is not canonical one
    dimension for each operand, behind those of the batch, and reshapes that to what it was. Where it was that
    already the reshape goes: its users are appended, and the last takes its place. DotDimensionMerger then
    makes one of several dimensions of the batch, with a reshape that keeps the order.
    """
    if _is_ragged(product):
        return True
    if not is_bitcast_of_product(product):
        is_reshaped = any(u.opcode == "bitcast" and u.shape.rank > product.shape.rank for u in users)
        return not is_reshaped and _adds_up_several(product)
    source = product.operands[0]
    if computed_by(source).opcode not in PRODUCTS or not source.shape.is_array or source.shape.rank < 3:
        return False
    if product.shape.rank <= source.shape.rank:
        return False
    if source.shape.dimensions[-2:] != product.shape.dimensions[-2:] or _was_canonical(product):
        return False
    # What the program transposed had no other users.
    return all(u.opcode != "transpose" for u in users)


def _is_ragged(x: Instruction) -> bool:
    """Is it the product of every group of rows with a matrix of its own, or the slice of one for one of two?

    RaggedDotRewriter (`xla/hlo/transforms/expanders/ragged_dot_rewriter.cc`) sums over the groups, too.
    """
    return operation(x) == "ragged_dot_general" and x.opcode != "bitcast" and x.shape.rank == _MATRIX


def _adds_up_several(product: Instruction) -> bool:
    """Is it a matrix of sums over several dimensions, as the derivative by the weights of a layer is?"""
    if product.shape.rank != _MATRIX or not is_of_derivative(computed_by(product)):
        return False
    sources = [_of_most_dimensions(o) for o in _multiplied(product)]
    told = [x.shape.true_rank > 2 for x in sources]
    return any(told) and all(is_told or _was_reshaped(x) for x, is_told in zip(sources, told, strict=True))


def _was_reshaped(x: Instruction) -> bool:
    """May `x` have had more dimensions in the program: as a product, or as a gather?

    GatherSimplifier (`xla/hlo/transforms/simplifiers/gather_simplifier.cc`) makes one dimension of those
    behind which a gather puts what it takes.
    """
    return operation(x) == _PRODUCT or x.opcode == "gather"


def _multiplied(product: Instruction) -> list[Instruction]:
    """What it is the product of, or was before it was merged with others."""
    if product.opcode == "slice":
        return operands_of_part(product) if operation(product) == _PRODUCT else []
    if not is_product(product):
        return []
    made = computed_by(split_of(product) or product)
    if made.opcode == "fusion":
        if not has_dot(made):
            return []
        made = next(x for x in made.fused_computation if x.opcode == "dot")
    return made.operands[:2]


def _of_most_dimensions(operand: Instruction) -> Instruction:
    """What the `operand` of a product was made of, as the program has it; products are matrices since."""
    found, pending, sources = {operand}, [operand], []
    while pending:
        x = pending.pop()
        near = _read_by(x)
        if not near:
            sources.append(x)
        pending += [o for o in near if o not in found]
        found.update(near)
    return max(sources, key=lambda s: s.shape.true_rank)


def _read_by(x: Instruction) -> list[Instruction]:
    """What `x` reads, up to what the fusion of a product reads that changes more than the shape."""
    fusion = x.computation and x.computation.fusion
    if fusion:
        return [fusion.operands[x.parameter_number]] if x.opcode == "parameter" else x.operands
    is_shape = is_filled_for_split(x) or (x.opcode in LAYOUT_ONLY and operation(x) != "reshape")
    return x.operands[:1] if is_shape else []


def _was_canonical(product: Instruction) -> bool:
    """Do all that it multiplies, or the derivative may, begin with the batch and have two dimensions more?

    That is told by the name of an einsum; what is no einsum multiplies matrices as they are.
    """
    found = _EINSUM.search(name := product.op_name or "")
    if found is None:
        return True
    left, right, result = (term.replace(_ANY, ".") for term in found.groups())
    batch = "".join(x for x in result if x in left and x in right)
    if not batch and name[: found.start() + 1].endswith("vmap(") and _was_batch_elsewhere(product):
        return False
    terms = (left, right, result) if is_of_derivative(product) else (left, right)
    return all(term.startswith(batch) and len(term) == len(batch) + 2 for term in terms)


def _was_batch_elsewhere(product: Instruction) -> bool:
    """Did a pass bring the batch of an operand to the front? An einsum of matrices has none in its name."""
    for x in computed_by(product.operands[0]).operands[:2]:
        while x.opcode == "bitcast":
            (x,) = x.operands
        if x.opcode == "transpose" and operation(x) == "reshape":
            return True
    return False
