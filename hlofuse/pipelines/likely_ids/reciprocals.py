"""Reciprocals of numbers, each of which is made right in front of the product for a division by the number.

Mirrors `HandleDivide` of `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`. CSE makes equal ones one
since, and a text has that in front of the product that it comes to first, which another one may have
been made before.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.order_of_pass import longest_rising
from hlofuse.pipelines.names import name_before_renaming
from hlofuse.pipelines.users.common.ages import was_division


def with_reciprocals_in_place(order: list[Instruction]) -> list[Instruction]:
    """What one pass made, in its likely `order`, with each reciprocal in front of the first of its products.

    It stays where it is if numbers of others tell that another product was its own.
    """
    place = {x: k for k, x in enumerate(order)}
    first = {
        x: min(map(place.__getitem__, x.users))
        for x in order
        if is_broadcast_of_constant(x) and x.users
        if all(u in place and was_division(u) for u in x.users)
    }
    chain = sorted(first, key=lambda x: name_before_renaming(x).number)
    kept = longest_rising([first[x] for x in chain])
    key = {x: (k, 1) for x, k in place.items()}
    key.update((x, (first[x], 0)) for k, x in enumerate(chain) if k in kept)
    return sorted(order, key=key.__getitem__)
