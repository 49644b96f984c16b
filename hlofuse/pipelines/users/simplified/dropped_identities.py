"""Products with one, and who reads the factor instead of them."""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_one_missing


def with_readers_in_place(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer`, each that reads it in place of a product in the place of that product.

    Simplification drops `producer * 1` and gives its readers `producer`; the last of them takes the place of
    the product (`HandleMultiply`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). Between products
    of `producer` with other constants, in one concatenate, a missing number shows where that was.
    """
    for reader in [u for u in users if u.opcode == "concatenate" and u.operands.count(producer) == 1]:
        place = reader.operands.index(producer)
        around = reader.operands[place - 1 : place + 2]
        if place and len(around) == 3 and _are_numbered_around(around[0], producer, around[2]):
            users = [u for u in users if u is not reader]
            users.insert(users.index(around[0]) + 1, reader)
    return users


def _are_numbered_around(before: Instruction, producer: Instruction, behind: Instruction) -> bool:
    """Are both products of `producer`, and one is missing between them?"""
    are_products = _is_product_of(before, producer) and _is_product_of(behind, producer)
    return are_products and is_one_missing(before, behind)


def _is_product_of(x: Instruction, factor: Instruction) -> bool:
    if x.opcode != "multiply" or factor not in x.operands:
        return False
    return is_constant(x.operands[x.operands[0] is factor])
