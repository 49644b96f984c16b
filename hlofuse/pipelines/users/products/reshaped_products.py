"""Matrix products of more than two dimensions.

DotDecomposer (`xla/hlo/transforms/expanders/dot_decomposer.cc`) makes the product one of matrices with a
reshape behind it, which is its only user then. Who reads the product itself read the reshape through another
that undid it.
"""

from __future__ import annotations

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.fusions import has_dot, is_gemm, readers_past_layout
from hlofuse.pipelines.users.common.holes import last_at

_PRODUCT = "dot_general"

PRODUCTS = frozenset({"custom-call", "dot", "fusion"})
"""What computes a product of the program."""


def with_reshape_in_front(product: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a product: the reshape, which bears the name of the product, and then the others.

    ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) made one reshape of those of all
    products that are added up, and moves it behind other element-wise operations.
    """
    if is_sum_of_products(product):
        reshapes = [u for u in users if u.opcode == "bitcast" and u.op_name == product.op_name]
        return reshapes + [u for u in users if u not in reshapes]
    if product.opcode not in {"dot", "fusion", "get-tuple-element"} and not is_sum_of_split(product):
        return users
    reshapes = [u for u in users if u.opcode == "bitcast" and operation(u) == _PRODUCT]
    if len(reshapes) != 1 or not is_product(product):
        return users
    if all(u.opcode == "dynamic-update-slice" for u in reshapes[0].users):
        return users  # a loop reshapes what it stacks
    others = [u for u in users if u not in reshapes]
    if stack_frame(reshapes[0]) != stack_frame(product) and all(
        u.opcode in ELEMENTWISE_OPCODES for u in others
    ):
        # It is that of another product, whose operand this is. That of this one is behind the element-wise
        # operations since, and the last of them took its place.
        return [*others[-1:], *reshapes, *others[:-1]]
    return reshapes + others


def with_last_in_place_of_operand(
    reshaped: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of what is computed of such a product, in the shape of the program.

    ReshapeMover computes it in the shape of the matrix, which the next product came to read as it is: the
    reshape for that goes (`HandleReshape`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and the
    last user takes its place. If only a product of the derivative is left, that of the program stood behind
    the products that read what was reshaped itself. `order` is the post-order.
    """
    if not _is_moved_behind_elementwise(reshaped) or any(u.opcode not in ELEMENTWISE_OPCODES for u in users):
        return users
    products = [u for u in reshaped.operands[0].users if operation(u) == _PRODUCT and u is not reshaped]
    if not products:
        return users
    of_program = [order[u] for u in products if not is_of_derivative(u)]
    if of_program:
        place = sum(order[u] < min(of_program) for u in users)
    else:
        place = sum(operation(u) == _PRODUCT for u in users)
    return last_at(users, place)


def _is_moved_behind_elementwise(x: Instruction) -> bool:
    """Is it a reshape with the name of an element-wise operation that gave more dimensions?"""
    if x.opcode != "bitcast" or not x.op_name:
        return False
    (source,) = x.operands
    if not source.shape.is_array or x.shape.true_rank <= source.shape.true_rank:
        return False
    if source.opcode == "fusion" and has_dot(source):
        source = source.fused_computation.root
    return source.opcode in ELEMENTWISE_OPCODES and source.op_name == x.op_name


def is_sum_of_split(x: Instruction) -> bool:
    """Is it the sum of what a product was split in (SplitK), or that made narrow again?"""
    return split_of(x) is not None


def split_of(x: Instruction) -> Instruction | None:
    """What a product was split in, of which `x` is the sum (SplitK), or that made narrow again."""
    if x.opcode == "convert" and operation(x) == _PRODUCT:
        (x,) = x.operands
    if x.opcode != "reduce" or operation(x) != _PRODUCT:
        return None
    split = without_bitcasts(x.operands[0])
    return split if computed_by(split).opcode in PRODUCTS else None


def is_filled_for_split(x: Instruction) -> bool:
    """Does SplitkRewriter (`xla/backends/gpu/transforms/splitk_rewriter.cc`) fill it up to equal parts?"""
    if x.opcode != "pad" or x.op_name:
        return False
    return bool(x.users) and all(r.opcode == "dot" or is_gemm(r) for r in readers_past_layout(x))


def is_sum_of_products(x: Instruction) -> bool:
    """Is it the sum of two products of the program or more?"""
    return x.opcode == "add" and all(is_product(o) or is_sum_of_products(o) for o in x.operands)


def is_product(x: Instruction) -> bool:
    """Is it what a product of the program gives, however that is computed?"""
    if is_sum_of_split(x):
        return True
    made = computed_by(x)
    return operation(made) == _PRODUCT and made.opcode in PRODUCTS


def computed_by(x: Instruction) -> Instruction:
    """What computes `x`: of an element of a tuple, as cuBLAS gives with its workspace, that of the tuple."""
    return x.operands[0] if x.opcode == "get-tuple-element" else x


def is_bitcast_of_product(x: Instruction) -> bool:
    """Is it such a product in the shape that the program has?"""
    return x.opcode == "bitcast" and operation(x) == _PRODUCT
