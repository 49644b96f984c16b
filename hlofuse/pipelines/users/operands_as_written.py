"""The order of users in the program, of which some operations read other operands now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.calls.swapped_branches import operands_before_swap
from hlofuse.pipelines.users.common.visits import order_of_walk
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
    products: list[Product]
    by_quotients: list[DivisionByQuotient]


def as_written(computation: Computation) -> Program:
    """What the program had other operands for. Of products ids tell."""
    products = products_with_multiplied_constants(computation)
    by_quotients = divisions_by_quotients(computation)
    return Program(_order(computation, products, by_quotients), products, by_quotients)


def _order(
    computation: Computation, products: Sequence[Product], by_quotients: Sequence[DivisionByQuotient]
) -> dict[Instruction, int]:
    read = operands_before_gemms(computation)
    read |= {x.outer: [x.inner, x.factor, *x.outer.operands] for x in products if x.inner is not None}
    read |= {x: before for x in computation if (before := operands_before_swap(x)) is not None}
    nested = nested_divisions(computation)
    for division in nested:
        read |= division.operands
    for by_quotient in by_quotients:
        read |= by_quotient.operands
    if not read and not any(has_side_input(x) for x in computation):
        return {}
    starts = (x for x in computation if not x.users)
    order = order_of_walk(starts, lambda x: read.get(x) or operands_before_side_input(x))
    for division in nested:
        division.take_place_of_inner(order)
    return order
