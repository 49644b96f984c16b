"""The order of users in the program, of which some operations read other operands now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.calls.derived_choices import choice_in_front
from hlofuse.pipelines.users.calls.swapped_branches import operands_before_swap
from hlofuse.pipelines.users.calls.unread_results import started_from
from hlofuse.pipelines.users.common.visits import order_of_walk
from hlofuse.pipelines.users.products.merged_dots import operands_before_merger
from hlofuse.pipelines.users.products.side_inputs import has_side_input, operands_before_side_input
from hlofuse.pipelines.users.products.taken_operands import operands_before_gemms
from hlofuse.pipelines.users.products.taken_prologues import leads_to_gemm_with_prologue
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
    at_cse: dict[Instruction, int]
    """The same once calls were inlined: the framework makes a broadcast for each that reads one."""
    for_each: dict[Instruction, int]
    """The post-order when no result is there any more that nobody reads: CSE comes after that."""
    apart: frozenset[Instruction]
    """What came with merged products, last in that order: the program does not have it."""
    products: list[Product]
    by_quotients: list[DivisionByQuotient]
    parts: dict[Instruction, list[Instruction]]
    """The parts of merged products by what they read."""

    def put_in_order(self, x: Instruction) -> None:
        """Sort the users of `x`; where one of them is not of the program, they stay as they are.

        What DotMerger concatenated took the place of the first product that read `x`, if it is the only one.
        A bitcast may have been the product's alone. What a gemm took along stood there, too.
        """
        if len(x.users) < 2:
            return
        order = self.at_cse if _is_merged(x) else self.for_each if is_made_for_each(x) else self.order
        place = {u: order[u] for u in x.users}
        parts = self.parts.get(x, [])
        apart = self.apart.intersection(x.users)
        if len(apart) > 1 or (apart and not parts):
            return
        for user in apart:
            is_in_place = user.opcode == "concatenate" and x.opcode != "bitcast"
            if not is_in_place and not leads_to_gemm_with_prologue(user, x):
                return
            place[user] = min(map(self.order.__getitem__, parts))
        x.users.sort(key=place.__getitem__)


def _is_merged(x: Instruction) -> bool:
    """Is it a broadcast that CSE made of several? What no function reads may be the program's."""
    return x.opcode == "broadcast" and any(map(outermost_call, x.users))


def is_made_for_each(x: Instruction) -> bool:
    """Is it a broadcast that the framework made for an operation, so that CSE made one of several?"""
    if x.opcode != "broadcast" or not x.operands[0].shape.rank or not is_of_program(x):
        return False
    return operation(x) != "broadcast_in_dim"


def as_written(computation: Computation) -> Program:
    """What the program had other operands for. Of products ids tell."""
    products = products_with_multiplied_constants(computation)
    by_quotients = divisions_by_quotients(computation)
    in_gemms = operands_before_gemms(computation)
    of_parts = operands_before_merger(computation, in_gemms)
    read = in_gemms | of_parts
    order, apart = _order(computation, read, products, by_quotients)
    at_cse, derived = order, {x: it for x in computation if (it := choice_in_front(x)) is not None}
    if derived:
        read |= {x: [it, *(read.get(x) or x.operands)] for x, it in derived.items()}
        at_cse = order or {x: k for k, x in enumerate(computation.post_order())}
        order, apart = _order(computation, read, products, by_quotients)
    for_each = order
    if order and started_from(computation):
        for_each, _ = _order(computation, read, products, by_quotients, is_unread_there=False)
    parts = dict[Instruction, list[Instruction]]()
    for part, operands in of_parts.items():
        for x in operands:
            parts.setdefault(x, []).append(part)
    return Program(order, at_cse, for_each, apart, products, by_quotients, parts)


def _order(
    computation: Computation,
    read: dict[Instruction, list[Instruction]],
    products: Sequence[Product],
    by_quotients: Sequence[DivisionByQuotient],
    *,
    is_unread_there: bool = True,
) -> tuple[dict[Instruction, int], frozenset[Instruction]]:
    read = dict(read)
    read |= {x.outer: [x.inner, x.factor, *x.outer.operands] for x in products if x.inner is not None}
    read |= {x: before for x in computation if (before := operands_before_swap(x)) is not None}
    nested = nested_divisions(computation)
    for division in nested:
        read |= division.operands
    for by_quotient in by_quotients:
        read |= by_quotient.operands
    if not read and not any(has_side_input(x) for x in computation):
        return {}, frozenset()
    unread = started_from(computation) if is_unread_there else []
    starts = [*unread, *(x for x in computation if not x.users)]
    order = order_of_walk([*starts, *computation], lambda x: read.get(x) or operands_before_side_input(x))
    last = max(map(order.__getitem__, starts))
    apart = frozenset(x for x, place in order.items() if place > last)
    for division in nested:
        division.take_place_of_inner(order)
    return order, apart
