"""Products of batches of matrices that had to be written as such: a reshape behind each changed nothing."""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_derivative, operation
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.products.reshaped_products import (
    PRODUCTS,
    computed_by,
    is_bitcast_of_product,
)

_EINSUM = re.compile(r"[/(]([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]*)[/)]")
_MATRIX = 2


def with_last_in_place_of_no_reshape(product: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a product with the last in front.

    DotDecomposer (`xla/hlo/transforms/expanders/dot_decomposer.cc`) gives a product that is not canonical one
    dimension for each operand, behind those of the batch, and reshapes that to what it was. Where it was that
    already the reshape goes: its users are appended, and the last takes its place. DotDimensionMerger then
    makes one of several dimensions of the batch, with a reshape that keeps the order.
    """
    if _is_ragged(product):
        return last_in_front(users)
    if not is_bitcast_of_product(product):
        return users
    source = product.operands[0]
    if computed_by(source).opcode not in PRODUCTS or not source.shape.is_array or source.shape.rank < 3:
        return users
    if product.shape.rank <= source.shape.rank:
        return users
    if source.shape.dimensions[-2:] != product.shape.dimensions[-2:] or _was_canonical(product):
        return users
    # What the program transposed had no other users.
    return users if any(u.opcode == "transpose" for u in users) else last_in_front(users)


def _is_ragged(x: Instruction) -> bool:
    """Is it the product of every group of rows with a matrix of its own, or the slice of one for one of two?

    RaggedDotRewriter (`xla/hlo/transforms/expanders/ragged_dot_rewriter.cc`) sums over the groups, too.
    """
    return operation(x) == "ragged_dot_general" and x.opcode != "bitcast" and x.shape.rank == _MATRIX


def _was_canonical(product: Instruction) -> bool:
    """Do all that it multiplies, or the derivative may, begin with the batch and have two dimensions more?

    That is told by the name of an einsum; what is no einsum multiplies matrices as they are.
    """
    found = _EINSUM.search(product.op_name or "")
    if found is None:
        return True
    left, right, result = found.groups()
    batch = "".join(x for x in result if x in left and x in right)
    terms = (left, right, result) if is_of_derivative(product) else (left, right)
    return all(term.startswith(batch) and len(term) == len(batch) + 2 for term in terms)
