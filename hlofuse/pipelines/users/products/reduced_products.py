"""Values of which a sum was taken in another shape, as that of matrix products often is.

AlgebraicSimplifier has the sum read what was reshaped, where all of the dimensions that the reshape tells
apart are summed, or none of them, and puts a reshape behind it in that case (`HandleReduce`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, operation
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.fusions import has_dot, is_gemm
from hlofuse.pipelines.users.common.grouping import is_grouped
from hlofuse.pipelines.users.common.holes import last_at, last_in_front, without
from hlofuse.pipelines.users.products.reshaped_products import (
    PRODUCTS,
    is_bitcast_of_product,
    is_sum_of_products,
)
from hlofuse.pipelines.users.products.side_inputs import has_bias, has_side_input


def with_last_in_place_of_reduction(
    reshaped: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of the value in its other shape, with the last where the sum had stood.

    Behind the matrix that a product is DotDecomposer put the reshape, so that the sum is behind what a gemm
    adds to it. `order` is the post-order.
    """
    if reshaped.opcode != "bitcast":
        return users
    (source,) = reshaped.operands
    sums = [u for u in source.users if u.opcode == "reduce"]
    if not is_bitcast_of_product(reshaped) and not _is_gemm_or_sum(source):
        had_one = 1 in reshaped.shape.dimensions
        sums = [u for u in sums if _is_reshaped_back(u) or (had_one and _kept_one(u))]
        sums = sums or _grouped_beside(reshaped, source)
    if len(sums) != 1:
        return users
    return without(sorted([*users, *sums], key=order.__getitem__), sums)


def _grouped_beside(reshaped: Instruction, source: Instruction) -> list[Instruction]:
    """Sums that readers of `reshaped` take from it, as its mean, of the `source` in one dimension.

    ReductionDimensionGrouper (`xla/backends/gpu/transforms/reduction_dimension_grouper.cc`) put a bitcast in
    front of what had come to read the source.
    """
    bitcasts = [u for u in source.users if u.opcode == "bitcast" and u is not reshaped]
    sums = [v for u in bitcasts for v in u.users if is_grouped(v, u)]
    return [x for x in sums if any(_is_computed_of(o, x) for u in reshaped.users for o in u.operands)]


def _is_computed_of(x: Instruction, sum_: Instruction) -> bool:
    """Is it the sum, or made of it and of numbers?"""
    while x is not sum_:
        read = [o for o in x.operands if not is_made_of_nothing(o)]
        if len(read) != 1 or x.opcode == "reduce":
            return False
        (x,) = read
    return True


def with_sum_behind_reshape(source: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of what was reshaped. The sum came to read it when the reshape had long done so.

    So did that of a product and what a library adds to it, of which the program sums all but one dimension:
    ReductionDimensionGrouper (`xla/backends/gpu/transforms/reduction_dimension_grouper.cc`) reshaped it back.
    """
    if source.opcode == "get-tuple-element" and has_side_input(source.operands[0]):
        return sorted(users, key=lambda u: not _is_sum_reshaped(u))
    sums = [u for u in users if u.opcode == "reduce" and _is_reshaped_back(u)]
    if len(sums) != 1 or not any(_is_reshape_of(u, source) for u in users):
        return users
    return [*(u for u in users if u not in sums), *sums]


def with_sum_behind_transpose(reshaped: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a product that the program transposes and adds up, as the gradient by a bias is.

    The sum was one of the transpose. It came to read the product itself behind that, which products of the
    derivative still read.
    """
    if not is_bitcast_of_product(reshaped):
        return users
    sums = [u for u in users if u.opcode == "reduce" and operation(u) == "reduce_sum"]
    first = next((u for u in users if u.opcode == "transpose" and _is_for_products(u)), None)
    if first is None or not any(users.index(u) < users.index(first) for u in sums):
        return users
    ahead = [u for u in sums if users.index(u) < users.index(first)]
    left = [u for u in users if u not in ahead]
    place = left.index(first) + 1
    return [*left[:place], *ahead, *left[place:]]


def _is_for_products(x: Instruction) -> bool:
    """Is it read by nothing but matrix products, in whatever shape, or with what others of them read?"""
    through = {"bitcast", "concatenate"}
    return all(_is_for_products(u) if u.opcode in through else u.opcode in PRODUCTS for u in x.users)


def with_last_in_place_of_transpose(product: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of what a dot with a vector multiplied: its own sum, and one of that, which reads it as well.

    The dot sums the last dimension (`HandleDotStrengthReduction`). Where the sum is of another one,
    ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) had put a transpose between; when both
    sums had come to read the product, the last of them took its place.
    """
    if product.opcode != "multiply" or operation(product) != "dot_general" or len(users) != 2:
        return users
    own = [u for u in users if u.opcode == "reduce" and u.op_name == product.op_name]
    others = [v for u in users for v in u.users if is_grouped(v, u)]
    if len(own) != 1 or len(others) != 1 or product.shape.rank - 1 in own[0].attributes["dimensions"]:
        return users
    return last_in_front(users)


def with_last_in_place_of_squeezed(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of what a gemm reads without its dimensions of one, in which a sum of it was as well.

    The bitcast that ReductionDegenerateDimRemover put in front of the sum stood where the sum had been, until
    HloCSE had the sum read that of the gemm: the last user took its place. A sum that is behind the
    gemm in `order`, the post-order, is where it was in the program.
    """
    if not producer.shape.is_array or 1 not in producer.shape.dimensions:
        return users
    for k, user in enumerate(users):
        if user.opcode != "bitcast" or list(user.shape.dimensions) != producer.shape.true_dimensions:
            continue
        sums = [u for u in user.users if _kept_one(u) or _was_made_anew(u)]
        gemms = [u for u in user.users if is_gemm(u) or _is_multiplied(user, u)]
        if gemms and sums:
            first = min(order[x] for x in sums)
            if first < min(order[x] for x in gemms):
                return last_at(users, k)
            return last_at(users, sum(order[u] < first for u in users))
    return users


def _is_multiplied(x: Instruction, product: Instruction) -> bool:
    """Does a library multiply it, and not add the product to it?"""
    return product.opcode == "custom-call" and x in product.operands[:2]


def _kept_one(x: Instruction) -> bool:
    """Is it a sum that had a dimension of one in the program?

    ReductionDegenerateDimRemover (`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`) made it
    anew without, with a bitcast in front and one behind.
    """
    if x.opcode != "reduce":
        return False
    return any(_is_named_after(u, x) and u.shape.rank > x.shape.rank for u in x.users)


def _was_made_anew(x: Instruction) -> bool:
    """Is it a reduction that has its name of a pass? What was behind it may have taken the bitcast in."""
    return x.opcode == "reduce" and name_before_renaming(x).root == "reduce" != operation(x)


def _is_reshaped_back(sum_: Instruction) -> bool:
    """Has it less dimensions than the sum of the program?"""
    return any(_is_reshape_of(u, sum_) for u in sum_.users)


def _is_sum_reshaped(x: Instruction) -> bool:
    """Is it what a library gives in the shape of the program, by the name of the sum that it took in?"""
    if x.opcode != "bitcast" or not operation(x).startswith("add"):
        return False
    return x.shape.rank > x.operands[0].shape.rank


def _is_reshape_of(x: Instruction, source: Instruction) -> bool:
    """Does it tell dimensions of that apart? More dimensions of one change nothing."""
    return _is_named_after(x, source) and x.shape.true_rank > source.shape.true_rank


def _is_named_after(x: Instruction, source: Instruction) -> bool:
    """A reshape has the name of what it reshapes."""
    return x.opcode == "bitcast" and bool(x.op_name) and x.op_name == source.op_name


def _is_gemm_or_sum(x: Instruction) -> bool:
    """Is it a product that a fusion computes, or a sum with one, which a library call may have taken in?"""
    if x.opcode == "get-tuple-element" and (has_side_input(x.operands[0]) or has_bias(x.operands[0])):
        return True
    return (x.opcode == "fusion" and has_dot(x)) or is_sum_of_products(x)
