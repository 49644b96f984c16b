"""The order of users in the program, of which some operations read other operands now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.calls.swapped_branches import operands_before_swap
from hlofuse.pipelines.users.common.visits import order_of_walk
from hlofuse.pipelines.users.products.merged_dots import operands_before_merger
from hlofuse.pipelines.users.products.side_inputs import has_side_input, operands_before_side_input
from hlofuse.pipelines.users.products.taken_operands import operands_before_gemms
from hlofuse.pipelines.users.simplified.inverted_quotients import (
    DivisionByQuotient,
    divisions_by_quotients,
)
from hlofuse.pipelines.users.simplified.multiplied_constants import (
    Product,
    products_with_multiplied_constants,
)
from hlofuse.pipelines.users.simplified.nested_divisions import nested_divisions


class Program(NamedTuple):
    """A computation as the program has it, where it is told."""

    order: dict[Instruction, int]
    """The post-order with the operands of then; empty where none was another."""
    apart: frozenset[Instruction]
    """What came with merged products, last in that order: the program does not have it."""
    products: list[Product]
    by_quotients: list[DivisionByQuotient]

    def put_in_order(self, users: list[Instruction]) -> None:
        """Sort `users`; where one of them is not of the program, they stay as they are."""
        if self.apart.isdisjoint(users):
            users.sort(key=self.order.__getitem__)


def as_written(computation: Computation) -> Program:
    """What the program had other operands for. Of products ids tell."""
    products = products_with_multiplied_constants(computation)
    by_quotients = divisions_by_quotients(computation)
    order, apart = _order(computation, products, by_quotients)
    return Program(order, apart, products, by_quotients)


def _order(
    computation: Computation, products: Sequence[Product], by_quotients: Sequence[DivisionByQuotient]
) -> tuple[dict[Instruction, int], frozenset[Instruction]]:
    read = operands_before_gemms(computation) | operands_before_merger(computation)
    read |= {x.outer: [x.inner, x.factor, *x.outer.operands] for x in products if x.inner is not None}
    read |= {x: before for x in computation if (before := operands_before_swap(x)) is not None}
    nested = nested_divisions(computation)
    for division in nested:
        read |= division.operands
    for by_quotient in by_quotients:
        read |= by_quotient.operands
    if not read and not any(has_side_input(x) for x in computation):
        return {}, frozenset()
    starts = [x for x in computation if not x.users]
    order = order_of_walk([*starts, *computation], lambda x: read.get(x) or operands_before_side_input(x))
    last = max(map(order.__getitem__, starts))
    apart = frozenset(x for x, place in order.items() if place > last)
    for division in nested:
        division.take_place_of_inner(order)
    return order, apart
