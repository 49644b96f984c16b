"""Products of products with constants, of which the constants were multiplied.

AlgebraicSimplifier makes `(x * a) * b` into `x * (a * b)` (`HandleMultiply`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the outer product reads another constant from then
on, and `x` itself, where the inner one is used elsewhere and stays.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.constants import in_single_precision, number_of
from hlofuse.pipelines.users.common.holes import without


class Product(NamedTuple):
    """One such product as the program has it."""

    outer: Instruction
    inner: Instruction | None
    """None where it is gone."""
    factor: Instruction
    """The broadcast of the constant that the one read that is gone or reads another now."""


def products_with_multiplied_constants(computation: Computation) -> list[Product]:
    """Those of `computation`, in the order in which they were made."""
    numbers: dict[Hashable, list[tuple[Instruction, float]]] = {}
    for x in computation:
        value = number_of(x)
        if value is not None:
            numbers.setdefault(x.shape.key, []).append((x, value))
    found = [_as_written(x, numbers.get(x.shape.key, [])) for x in computation if x.opcode == "multiply"]
    products = [x for x in found if x is not None] + _derivatives_of_squares(computation, numbers)
    return sorted(products, key=lambda x: x.outer.id)


def _derivatives_of_squares(
    computation: Computation, numbers: dict[Hashable, list[tuple[Instruction, float]]]
) -> list[Product]:
    """Those of products `(x * 2) * broadcast(y * c)`, as the derivative of the mean of `x * x` has them.

    They are `x * broadcast(y * (2 * c))`, of which the inner product takes its place behind `y`.
    """
    found: list[Product] = []
    for scaled in computation:
        if scaled.opcode != "multiply" or is_of_program(scaled) or not is_of_derivative(scaled):
            continue
        value = number_of(scaled.operands[1])
        if value is None or operation(scaled) != "mul" or not _is_broadcast_for_product(scaled):
            continue
        halves = (x for x, half in numbers.get(scaled.shape.key, []) if 2 * half == value)
        here = _derived_function(scaled)
        factors = (
            x
            for x in halves
            if x.id < scaled.id and any(was_division(u) and _derived_function(u) == here for u in x.users)
        )
        if (factor := next(factors, None)) is not None:
            found.append(Product(scaled, None, factor))
    return found


def _derived_function(x: Instruction) -> str:
    """The function or layer it is of; for a derivative that which was derived."""
    return (x.op_name or "").rpartition("/")[0].replace("transpose(", "").replace(")", "")


def _is_broadcast_for_product(scaled: Instruction) -> bool:
    x = scaled
    while len(x.users) == 1 and x.opcode in {"multiply", "bitcast", "transpose", "broadcast"}:
        (user,) = x.users
        if x.opcode == "broadcast":
            return user.opcode == "multiply" and user.op_name == scaled.op_name
        if user.opcode == "multiply":
            return False
        x = user
    return False


def _as_written(outer: Instruction, numbers: list[tuple[Instruction, float]]) -> Product | None:
    x, value = outer.operands[0], number_of(outer.operands[1])
    # It took over the name of the one it replaced, and what reads it was there before.
    if value is None or not is_of_program(outer) or not any(user.id < outer.id for user in outer.users):
        return None
    for inner in x.users:
        if inner.opcode != "multiply" or inner.id >= outer.id or inner.operands[0] is not x:
            continue
        first = number_of(inner.operands[1])
        if first is None:
            continue
        for factor, second in numbers:
            if factor.id < outer.id and in_single_precision(first * second) == value:
                return Product(outer, inner, factor)
    return None


def with_products_gone(
    factor: Instruction, users: list[Instruction], order: dict[Instruction, int], products: list[Product]
) -> list[Instruction]:
    """The users of such a `factor`, from among which those products went one by one.

    Each had stood behind what the walk, `order`, comes to before it. Another round of CSE gave the factor the
    users that are as young as what they became.
    """
    gone = [x.outer for x in products if x.factor is factor]
    if not gone:
        return users
    listed = [u for u in users if u.id < gone[0].id]
    for outer in gone:
        before = max((u for u in listed if order[u] < order[outer]), key=order.__getitem__, default=None)
        listed.insert(0 if before is None else listed.index(before) + 1, outer)
    return without(listed, gone) + [u for u in users if u.id > gone[0].id]
