"""What is divided by a scalar of the program, and once more by it and by another.

AlgebraicSimplifier makes `(a / b) / c` into `a / (b * c)` (`HandleDivide`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), where `a / b` may be read by others as well. The
product of both broadcasts is dead once it is one of scalars that is spread; HloDCE takes it away when HloCSE
has made the broadcasts of the scalar one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.names import is_of_program, name_before_renaming
from hlofuse.pipelines.users.common.holes import without

_Reader = Instruction | str
"""A user that is there, or one that is gone."""


def with_divisors_products_gone(
    divisor: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a `divisor`, a broadcast, each with that product behind it until they went.

    Some divided a vector that is divided with dimensions of one now: ReshapeMover
    (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) put a reshape of the `divisor` in the place of each,
    of which HloCSE kept the first. `order` is the post-order.
    """
    if divisor.opcode != "broadcast" or not is_of_program(divisor) or len(users) < 2:
        return users
    (scalar,) = divisor.operands
    if scalar.shape.rank or is_constant(scalar) or not all(_divides_by(divisor, u) for u in users):
        return users
    moved = {u for x in scalar.users if _is_reshape_of(x, divisor) for u in x.users if _divides_by(x, u)}
    turns = [turn for u in (*users, *moved) for turn in _turns(u, scalar, order)]
    if not any(turn.is_divided_again for turn in turns):
        return users
    listed: list[_Reader] = []
    products: list[_Reader] = []
    reshapes: list[_Reader] = []
    merged: list[_Reader] = []
    for k, turn in enumerate(sorted(turns)):
        quotient: _Reader = turn.quotient if turn.is_first else f"quotient {k}"
        product = f"product {k}"
        listed += [quotient, product] if turn.is_divided_again else [quotient]
        if turn.quotient in moved:
            reshapes.append(f"reshape {k}")
        elif not turn.is_first:
            merged += [quotient, product]
        if turn.is_divided_again and turn.is_first:
            products.append(product)
    for reshape, u in zip(reshapes, [u for u in listed if u in moved], strict=True):
        listed = without([*listed, reshape], [u])
    left = without(listed, [*reshapes[1:], *merged, *products, *reshapes[:1]])
    return [u for u in left if isinstance(u, Instruction)]


def with_divided_by_products_behind(number: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a `number`, with what divides it by the product of both scalars behind the others.

    The program's quotient by one of them is still read, and came first.
    """
    written = [
        q for q in users if q.opcode == "divide" and q.operands[0] is number and not is_made_by_pass(q)
    ]
    divisors = [q.operands[1] for q in written if q.operands[1].opcode == "broadcast"]
    scalars = [x.operands[0] for x in divisors if not x.operands[0].shape.rank]
    if not scalars:
        return users
    return sorted(
        users, key=lambda u: is_made_by_pass(u) and any(_is_divided_by_product(u, x) for x in scalars)
    )


class _Turn(NamedTuple):
    """One division in the program by the divisor."""

    place: int
    is_first: bool
    is_divided_again: bool
    quotient: Instruction


def _turns(quotient: Instruction, scalar: Instruction, order: dict[Instruction, int]) -> Iterator[_Turn]:
    """Those of which HloCSE kept one: what is divided again is taken from several values then."""
    again = [v for v in quotient.operands[0].users if v is not quotient and _is_divided_by_product(v, scalar)]
    yield _Turn(order[quotient], True, bool(again), quotient)
    for v in again:
        readers = sorted((u for u in v.users if u.opcode == "subtract"), key=order.__getitem__)
        for u in readers[1:]:
            yield _Turn(order[u], False, True, quotient)


def _divides_by(divisor: Instruction, x: Instruction) -> bool:
    return x.opcode == "divide" and x.operands[1] is divisor


def _is_reshape_of(x: Instruction, divisor: Instruction) -> bool:
    """Is it another broadcast of the same, with more dimensions of one, that no operation was made with?"""
    if x.opcode != "broadcast" or is_of_program(x) or x.shape.rank <= divisor.shape.rank:
        return False
    return x.shape.true_dimensions == divisor.shape.true_dimensions


def _is_divided_by_product(x: Instruction, scalar: Instruction) -> bool:
    """Is it divided by a product that was made of the `scalar`?"""
    if x.opcode != "divide" or x.operands[1].opcode != "broadcast":
        return False
    (product,) = x.operands[1].operands
    is_made = product.opcode == "multiply" and name_before_renaming(product).root == product.opcode
    factors = (o.operands[0] if o.opcode == "broadcast" else o for o in product.operands)
    return is_made and scalar in factors
