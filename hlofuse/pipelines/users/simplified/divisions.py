"""Divisions by constants, which became multiplications (`HandleDivide`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import number_in_name
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.holes import without

Divisions: TypeAlias = "list[Instruction]"
"""Products that were divisions, in the order of their numbers."""


def divisions(order: Iterable[Instruction]) -> Divisions:
    """Those among the instructions `order`."""
    found = [x for x in order if was_division(x)]
    return sorted(found, key=number_in_name)


def made_again(products: Divisions) -> frozenset[Instruction]:
    """Those of the `products` that took over the name of an older one: younger than one with a higher number.

    `(x * c) / d` became `(x * c) * (1 / d)` first, which `HandleMultiply` made `x * (c / d)`.
    """
    found = set()
    oldest = products[-1].id if products else 0
    for x in reversed(products):
        if x.id > oldest and number_in_name(x):
            found.add(x)
        oldest = min(oldest, x.id)
    return frozenset(found)


def are_divisions(users: list[Instruction]) -> bool:
    """Were all of them, and were they made one after the other?"""
    by_age = sorted(users, key=lambda u: u.id)
    rising = sorted(by_age[1:], key=number_in_name) == by_age[1:]
    return rising and all(was_division(u) for u in users)


def in_order_of_divisions(users: list[Instruction], products: Divisions) -> list[Instruction]:
    """The `users` of the reciprocal in the order of age, given that some of the `products` read another now.

    `(x * c) / d` became `(x * c) * (1 / d)` and then `x * (c / d)`, which is younger than the others and took
    over the name, number and all (`HandleMultiply`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The last user took its place.
    """
    by_age = sorted(users, key=lambda u: u.id)
    if len(by_age) < 3:
        return by_age
    last, span = by_age[-1], (number_in_name(by_age[1]), number_in_name(by_age[-1]))
    own = set(users)
    gone = [
        x
        for x in products
        if x not in own and x.id > last.id and x.shape == last.shape and number_in_name(x) < span[1]
    ]
    behind = iter(sorted([*by_age[1:], *gone], key=number_in_name))
    return without([by_age[0], *behind], gone)
