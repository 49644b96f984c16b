"""Divisions by a quotient, which became products with its divisor.

AlgebraicSimplifier makes `a / (b / c)` into `(a * c) / b` (`HandleDivide`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the division is no user of `b / c` any more, and at
the end a user of `b`, as the product is of `c`. Where `b` is one, the product is all that is left of it.
"""

from __future__ import annotations

from typing import NamedTuple

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.constants import number_of
from hlofuse.pipelines.users.common.divisors import is_made_for
from hlofuse.pipelines.users.common.holes import without


class DivisionByQuotient(NamedTuple):
    """One of these."""

    division: Instruction
    product: Instruction
    quotient: Instruction
    """`b / c`, or what stands for it if it is gone."""

    @property
    def operands(self) -> dict[Instruction, list[Instruction]]:
        """What was read then."""
        number, divisor = self.product.operands
        if self.product is self.division:
            return {self.product: [number, self.quotient, divisor]}
        dividend = self.division.operands[1]
        read = {self.division: [number, self.quotient, self.product]}
        return read if self.is_quotient_left else {**read, self.quotient: [dividend, divisor]}

    @property
    def is_quotient_left(self) -> bool:
        return self.quotient.computation is not None


def divisions_by_quotients(computation: Computation) -> list[DivisionByQuotient]:
    """Those of `computation`."""
    found = []
    for x in computation:
        if was_division(x) and (by_one := _reciprocal_of(x.operands[1])):
            found.append(DivisionByQuotient(x, x, by_one))
        if x.opcode != "divide" or not is_of_program(x):
            continue
        product, dividend = x.operands
        if product is dividend or not is_made_for(product, x) or is_made_for(dividend, x):
            continue
        operands = [dividend, product.operands[1]]
        quotients = (u for u in dividend.users if u.opcode == "divide" and u.operands == operands)
        gone = Instruction(x.name, x.shape, x.opcode)
        found.append(DivisionByQuotient(x, product, next(quotients, gone)))
    return found


def _reciprocal_of(divisor: Instruction) -> Instruction | None:
    """One divided by it, which itself was the divisor of a division."""
    if is_broadcast_of_constant(divisor):
        return None
    divisions = (u for u in divisor.users if u.opcode == "divide" and u.operands[1] is divisor)
    return next((u for u in divisions if number_of(u.operands[0]) == 1), None)


def restore_around_quotients(found: list[DivisionByQuotient], order: dict[Instruction, int]) -> None:
    """The users of what such a division reads, or read, which are in the `order` of the program."""
    for x in found:
        read_since = {x.division: x.division.operands[1], x.product: x.product.operands[1]}
        for user, read in read_since.items():
            users = [u for u in read.users if u is not user]
            if not x.is_quotient_left:
                users = sorted([*users, x.quotient], key=order.__getitem__)
            read.users[:] = without([*users, user], [x.quotient] if not x.is_quotient_left else [])
        if x.is_quotient_left:
            users = sorted([*x.quotient.users, x.division], key=order.__getitem__)
            x.quotient.users[:] = without(users, [x.division])
