"""The order of users in the program, of which some operations read other operands now."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.multiplied_constants import Product
from hlofuse.pipelines.side_inputs import has_side_input, operands_before_side_input
from hlofuse.pipelines.visits import order_of_walk


def order_as_written(computation: Computation, products: Sequence[Product]) -> dict[Instruction, int]:
    """The post-order with the operands that the program has; empty where none is another."""
    read = {x.outer: [x.inner, x.factor, *x.outer.operands] for x in products}
    if not read and not any(has_side_input(x) for x in computation):
        return {}
    starts = (x for x in computation if not x.users)
    return order_of_walk(starts, lambda x: read.get(x) or operands_before_side_input(x))
