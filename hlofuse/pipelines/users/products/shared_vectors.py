"""Arrays that several products, or both sides of one, read as a vector."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses, order_of_walk


def with_vectors_made_one(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of `producer`, of which the first is the reshape to a vector that products share.

    A product with a vector is made a broadcast, a multiplication and a sum (`DotStrengthReduction`,
    `xla/backends/gpu/transforms/dot_strength_reduction.cc`). Each, the derivatives of another among them, had
    a reshape of its own until they were made one, and the last users took the places of the rest. So has
    either side of an outer product, which HloCSE (`xla/service/hlo_cse.cc`) makes one. Where the program
    reshaped for the product, the two reshapes become a new one (`HandleReshape`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), behind what else there is. `order` is the
    post-order.
    """
    if len(users) < 2:
        return users
    late = [u for u in users if _is_of_reshaped(u, producer)]
    users = [*(u for u in users if u not in late), *late]
    vector = next((u for u in users if _is_vector(u, producer)), None)
    vector = vector or next((u for u in users if len(_sides_of(u)) > 1), users[0])
    sides = _sides_of(vector)
    place = users.index(vector) + 1
    if _is_vector(vector, producer):
        gone = range(_products_of(vector) - 1)
    elif sides and any(u not in sides for u in vector.users):  # the program had reshaped it for others
        gone = range(len(sides))
        place = sum(order[u] < min(map(order.__getitem__, sides)) for u in users)
    else:
        gone = range(len(sides) - 1)
    listed: list[Instruction | int] = [*users[:place], *gone, *users[place:]]
    return [u for u in without(listed, gone) if isinstance(u, Instruction)]


def with_product_in_place_of_vector(
    x: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of what a product of vectors multiplies in the shape of the program.

    ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) multiplies ahead of what made a vector of
    either operand: the product is appended and takes the place of the first of those of `x`, the last user
    that of another.
    """
    if x.shape.true_rank < 2:
        return users  # a product reads it as it is
    for product in [u for u in users if _is_ahead_of_vector(u)]:
        needed = order_of_walk(product.operands, lambda y: y.operands)
        behind = [k for k, u in enumerate(users) if u in needed and uses[x, u] > uses[x, product]]
        place = min([*behind, users.index(product)])
        others = [u for u in users if u is not product]
        gone = range(product.operands.count(x) - 1)
        listed: list[Instruction | int] = [*others[:place], product, *gone, *others[place:]]
        users = [u for u in without(listed, gone) if isinstance(u, Instruction)]
    return users


def _is_ahead_of_vector(product: Instruction) -> bool:
    if product.opcode != "multiply" or not _is_of_product(product) or len(product.users) != 1:
        return False
    (vector,) = product.users
    return vector.opcode == "bitcast" and vector.shape.rank == 1 and product.shape.rank > 1


def with_own_product_first(spread: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a vector `spread` for several such products, which each had it spread for itself.

    HloCSE keeps the one that it meets first, which bears the place in the source of the product it was for.
    """
    place = stack_frame(spread)
    if spread.opcode != "broadcast" or not _is_of_product(spread) or is_of_program(spread) or not place:
        return users
    own = [u for u in users if _is_of_product(u) and stack_frame(u) == place]
    return [*own, *(u for u in users if u not in own)]


def _is_vector(user: Instruction, matrix: Instruction) -> bool:
    if user.opcode != "bitcast" or not matrix.shape.is_array or matrix.shape.rank != 2:
        return False
    return user.shape.rank == 1 and 1 in matrix.shape.dimensions


def _is_of_reshaped(user: Instruction, value: Instruction) -> bool:
    """Is it a vector that a product spreads, of a value that has more dimensions, none of them one?"""
    if user.opcode != "bitcast" or user.shape.rank != 1 or not is_elementwise(value):
        return False
    is_matrix = value.shape.rank > 1 and 1 not in value.shape.dimensions
    return is_matrix and all(x.opcode == "broadcast" and _is_of_product(x) for x in user.users)


def _products_of(vector: Instruction) -> int:
    """How many products there are in which it was spread over the rows of the other operand."""
    spread = (x for x in vector.users if x.opcode == "broadcast" and _is_of_product(x))
    return len({u for x in spread for u in x.users if _is_of_product(u)})


def _sides_of(vector: Instruction) -> list[Instruction]:
    """What spreads it on the sides of an operation that spreads both of its own, reshaped for each."""
    if vector.opcode != "bitcast" or vector.shape.rank != 1 or vector.operands[0].shape.rank == 1:
        return []
    spread = [x for x in vector.users if x.opcode == "broadcast" and is_of_program(x)]
    around = {u: None for x in spread for u in x.users}
    found: list[Instruction] = []
    for u in around:
        sides = {x.dimensions: x for x in spread if x in u.operands}
        found = max(found, [*sides.values()], key=len)
    return found if len(found) > 1 else []


def _is_of_product(x: Instruction) -> bool:
    return operation(x) == "dot_general"
