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
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.constants import in_single_precision, number_of
from hlofuse.pipelines.users.common.holes import without


class Product(NamedTuple):
    """One such product as the program has it."""

    outer: Instruction
    inner: Instruction
    factor: Instruction
    """The broadcast of the constant that it read."""


def products_with_multiplied_constants(computation: Computation) -> list[Product]:
    """Those of `computation`, in the order in which they were made."""
    numbers: dict[Hashable, list[tuple[Instruction, float]]] = {}
    for x in computation:
        value = number_of(x)
        if value is not None:
            numbers.setdefault(x.shape.key, []).append((x, value))
    found = [_as_written(x, numbers.get(x.shape.key, [])) for x in computation if x.opcode == "multiply"]
    return sorted((x for x in found if x is not None), key=lambda x: x.outer.id)


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

    Each had stood where the walk comes to what reads it, `order`.
    """
    gone = [x.outer for x in products if x.factor is factor]
    if not gone:
        return users
    listed = list(users)
    for outer in gone:
        place = next((k for k, u in enumerate(listed) if order[u] > order[outer]), len(listed))
        listed.insert(place, outer)
    return without(listed, gone)
