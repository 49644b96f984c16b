"""Products of matrices of which a sum was taken as well, before they were matrices no more."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.fusions import has_dot
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.products.reshaped_products import is_bitcast_of_product, is_sum_of_products


def with_last_in_place_of_reduction(
    product: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a product in its shape of the program, with the last where the sum had stood.

    DotDecomposer put a reshape behind the matrix. AlgebraicSimplifier has the sum read the matrix, where all
    of the dimensions that the reshape tells apart are summed, or none of them (`HandleReduce`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). So it is behind what a gemm adds to it.
    `order` is the post-order.
    """
    if product.opcode != "bitcast":
        return users
    if not is_bitcast_of_product(product) and not _is_gemm_or_sum(product.operands[0]):
        return users
    sums = [u for u in product.operands[0].users if u.opcode == "reduce"]
    if len(sums) != 1:
        return users
    return without(sorted([*users, *sums], key=order.__getitem__), sums)


def _is_gemm_or_sum(x: Instruction) -> bool:
    return (x.opcode == "fusion" and has_dot(x)) or is_sum_of_products(x)
