"""Quotients that were divided again, of which the divisors were multiplied.

AlgebraicSimplifier makes `(a / b) / c` into `a / (b * c)` (`HandleDivide`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): in the program `c` came behind `a / b`, whose place
among the users of `a` and of `b` the new ones take.
"""

from __future__ import annotations

from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.divisors import is_made_for


class NestedDivision(NamedTuple):
    """One such division as the program has it."""

    outer: Instruction
    product: Instruction
    """Of the divisors."""
    inner: Instruction
    """What stands for `a / b`, which is gone."""

    @property
    def operands(self) -> dict[Instruction, list[Instruction]]:
        """What was read then."""
        (number, product), (first, second) = self.outer.operands, self.product.operands
        return {self.outer: [self.inner, second, product], self.inner: [number, first]}

    def take_place_of_inner(self, order: dict[Instruction, int]) -> None:
        """In an `order` that has `inner`."""
        order[self.outer] = order[self.product] = order.pop(self.inner)


def nested_divisions(computation: Computation) -> list[NestedDivision]:
    """Those of `computation`."""
    found = []
    for x in computation:
        if x.opcode != "divide" or not is_of_program(x):
            continue
        number, product = x.operands
        if is_made_for(product, x) and not is_made_for(number, x):
            found.append(NestedDivision(x, product, Instruction(x.name, x.shape, x.opcode)))
    return found
