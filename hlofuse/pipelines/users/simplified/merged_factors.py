"""Products with two numbers, one after the other, that became one product.

AlgebraicSimplifier makes `x * (c * d)` of `(x * c) * d` (`HandleMultiply`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The new product comes behind all users of `x`;
where nobody else reads `x * c` that goes, and leaves it its place. What reads `x * (c * d)` where that is
`x` itself takes its place. Likewise it makes `x * broadcast(y * c)` of `(x * c) * broadcast(y)`.
"""

from __future__ import annotations

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_of_called, is_of_derivative
from hlofuse.pipelines.names import is_of_program, is_one_missing, operation
from hlofuse.pipelines.users.common.ages import was_division, was_dot
from hlofuse.pipelines.users.common.constants import literal_of
from hlofuse.pipelines.users.common.holes import without


def with_merged_factors_behind(
    producer: Instruction, users: list[Instruction], again: frozenset[Instruction]
) -> list[Instruction]:
    """Such products of `producer` behind, where the product with one of the numbers is still there.

    Of what were divisions it is those `again`, that took over the name of another, and what is younger.
    """
    merged = _merged_products(producer, users, again)
    if not merged:
        return users
    others = [u for u in users if u not in merged]
    left = [u for u in others if _has_factor(u)]
    first = min(map(users.index, merged))
    if len(left) == 1 and users.index(left[0]) > first:  # a walk came to it first, as what the others read
        others.remove(left[0])
        others.insert(sum(users.index(u) < first for u in others), left[0])
    for reader in _readers_as_product(users):
        if reader in merged:
            continue
        others.remove(reader)
        merged.insert(merged.index(users[users.index(reader) - 1]) + 1, reader)
    return [*others, *merged]


def are_around_product_with_one(users: list[Instruction]) -> bool:
    """Does one of the `users` read their operand in place of a product of it, among others, with one?"""
    return bool(_readers_as_product(users))


def _readers_as_product(users: list[Instruction]) -> list[Instruction]:
    return [
        x
        for before, x, behind in zip(users, users[1:], users[2:], strict=False)
        if not has_merged_factor(x) and _are_numbered_around(before, behind)
    ]


def _are_numbered_around(before: Instruction, behind: Instruction) -> bool:
    """Are both such products, and the name of one between theirs is missing, that with one?"""
    return has_merged_factor(before) and has_merged_factor(behind) and is_one_missing(before, behind)


def _is_square(x: Instruction) -> bool:
    return x.opcode == "multiply" and x.operands[0] is x.operands[1]


def _merged_products(
    producer: Instruction, users: list[Instruction], again: frozenset[Instruction] = frozenset()
) -> list[Instruction]:
    """Those of `users`; none where no product with one of the numbers is left.

    Where `producer` was squared, the derivative of that had twice `producer`, which nobody else read.
    Of divisions `again` it is known that they read a product, which may be left.
    """
    first = min((u.id for u in again.intersection(users)), default=None)
    merged = [
        u
        for u in dict.fromkeys(users)
        if has_merged_factor(u) or (first is not None and u.id >= first and _has_factor(u))
    ]
    if any(map(_is_square, users)):
        is_left = any(is_of_derivative(u) and _has_factor(u) for u in users if u not in merged)
        merged = [u for u in merged if not is_of_derivative(u) or (is_left and u in again)]
    if is_broadcast_of_constant(producer) or not any(_has_factor(u) for u in users if u not in merged):
        return []
    return merged


def with_merged_gone(
    product: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    again: frozenset[Instruction],
) -> list[Instruction]:
    """The users of a `product` with a number, from among which those went that have its number in theirs.

    They read the other factor since, where it is the one product of that with a number of its own. If other
    passes have changed the list already it is not known where they stood, unless calls were
    inlined behind all that went.
    """
    if not users or not _has_factor(product) or has_merged_factor(product):
        return users
    x, _ = sorted(product.operands, key=is_broadcast_of_constant)
    merged = _merged_products(x, x.users, again)
    gone = [u for u in merged if u not in users]
    if not gone or product in merged or sum(map(_has_factor, x.users)) > len(gone) + 1:
        return users
    gone.sort(key=order.__getitem__)
    if users != product.users:
        is_in_front = all(map(is_of_called, users)) and order[gone[-1]] < min(map(order.__getitem__, users))
        return without([*gone, *users], gone) if is_in_front else users
    return without(sorted([*users, *gone], key=order.__getitem__), gone)


def has_merged_factor(x: Instruction) -> bool:
    """A product of the program with a number that a pass made and named after the product.

    A text without metadata does not tell.
    """
    if x.opcode != "multiply" or not x.op_name:
        return False
    factor = next((o for o in x.operands if is_broadcast_of_constant(o)), None)
    if factor is None or operation(factor) != operation(x):
        return False
    return is_of_program(x) and not is_of_program(factor)


def _has_factor(x: Instruction) -> bool:
    return x.opcode == "multiply" and any(map(is_broadcast_of_constant, x.operands))


def with_taken_into_broadcast_gone(
    product: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a `product` with a number, from among which those went that were products with broadcasts.

    They read the other factor since, and the number is in what is broadcast. They went one by one, in
    post-order, `order`. Where the broadcast has been made anew since, ids do not tell when the product was.
    """
    if product.opcode != "multiply" or not any(map(is_broadcast_of_constant, product.operands)):
        return users
    x, factor = sorted(product.operands, key=is_broadcast_of_constant)
    if is_broadcast_of_constant(x) or not (is_of_program(product) or was_division(product)):
        return users
    gone = [u for u in x.users if u is not product and _has_in_broadcast(u, factor)]
    gone.sort(key=order.__getitem__)
    return without(sorted([*users, *gone], key=order.__getitem__), gone) if gone else users


def with_taken_into_broadcast_behind(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `x`, with what read its product with a number, and took that in so, behind all older."""
    factors = [f for u in users for f in u.operands if u.opcode == "multiply" and is_broadcast_of_constant(f)]
    listed = list(users)
    for user in users:
        if any(_has_in_broadcast(user, f) or _has_in_broadcast_made_anew(user, f) for f in factors):
            here = listed.index(user)
            place = max((k for k, u in enumerate(listed) if u.id < user.id), default=here)
            listed.insert(max(here, place), listed.pop(here))
    return listed


def with_taken_beneath_broadcast_gone(
    literal: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a broadcast `literal` of a function without those computed ahead of a broadcast now.

    `broadcast(x) * literal` is `broadcast(x * number)`, with a broadcast of its own for the number
    (`TryToSinkBroadcastAfterElementwiseOps`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    `order` is the post-order.
    """
    if not is_broadcast_of_constant(literal) or not literal.op_name or len(users) < 2:
        return users
    smaller = [b for b in literal.operands[0].users if b is not literal and b.op_name == literal.op_name]
    made = [(b, p, q) for b in smaller for p in b.users for q in p.users if b.id + 1 == p.id == q.id - 1]
    gone = [q for b, p, q in made if _was_computed_of(literal, q, p) and b.id > literal.id]
    gone += _read_reshaped(literal)
    listed = list(users)
    for q in sorted(gone, key=order.__getitem__):
        place = next((k for k, u in enumerate(listed) if order[u] > order[q]), len(listed))
        listed.insert(place, q)
    return without(listed, gone)


def _read_reshaped(literal: Instruction) -> list[Instruction]:
    """What reads the number of a `literal` in another shape since, as what else it reads was reshaped.

    ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moved it in front of the reshape. It is
    what the `literal` was made for, and bears its name. Of several the first is: each had one of its own,
    and CSE made the reshape of that one with the first as soon as it had given it to the `literal`.
    """
    if not is_of_program(literal) or any(u.op_name == literal.op_name for u in literal.users):
        return []
    size = literal.shape.element_count
    like = (b for b in literal.operands[0].users if b.op_name == literal.op_name and b.id > literal.id)
    made = (b for b in like if b.opcode == "broadcast" and not is_of_program(b))
    reshaped = (b for b in made if b.shape.element_count == size)
    moved = {u: None for b in reshaped if b.shape.rank != literal.shape.rank for u in b.users}
    return [u for u in moved if u.op_name == literal.op_name][:1]


def _was_computed_of(literal: Instruction, broadcast: Instruction, x: Instruction) -> bool:
    """Was the operation `x` one of the `literal`, and gave what is its `broadcast` since?"""
    if broadcast.opcode != "broadcast" or broadcast.op_name != x.op_name or broadcast in literal.users:
        return False
    if not (x.op_name or "").startswith(f"{literal.op_name}/"):
        return False
    return x.opcode in ELEMENTWISE_OPCODES and broadcast.shape.dimensions == literal.shape.dimensions


def product_in_broadcast(x: Instruction) -> Instruction | None:
    """The product with a number that `x` reads broadcast, if `x` is a product made anew for that.

    The broadcast was made right ahead of it, or of another that took in the same: CSE made them one. A matrix
    product by a vector is such a product as well.
    """
    if x.opcode != "multiply" or not (is_of_program(x) or was_dot(x)):
        return None
    for o in x.operands:
        if o.opcode == "broadcast" and o.id < x.id and operation(o) == operation(x):
            if all(u.id != o.id + 1 for u in o.users):
                continue
            inner = without_bitcasts(o.operands[0])
            if inner.opcode == "multiply" and not is_of_program(inner):
                return inner
    return None


def _has_in_broadcast(x: Instruction, factor: Instruction) -> bool:
    """A product of the program, made anew right behind a broadcast of a product with the number `factor`."""
    inner = product_in_broadcast(x)
    return inner is not None and _is_factor_of(factor, inner)


def _has_in_broadcast_made_anew(x: Instruction, factor: Instruction) -> bool:
    """The same where the broadcast came later: what it read was moved in front of a reshape since."""
    if x.opcode != "multiply" or not is_of_program(x) or not is_made_by_pass(x):
        return False
    later = (o for o in x.operands if o.opcode == "broadcast" and o.id > x.id)
    inner = [without_bitcasts(o.operands[0]) for o in later if operation(o) == operation(x)]
    return any(p.opcode == "multiply" and not is_of_program(p) and _is_factor_of(factor, p) for p in inner)


def _is_factor_of(factor: Instruction, product: Instruction) -> bool:
    if not is_broadcast_of_constant(factor):
        return False
    value = literal_of(factor)
    return any(is_broadcast_of_constant(o) and literal_of(o) == value for o in product.operands)
