"""Transposes that put the dimensions of a matrix product's operand in order."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.fusions import has_dot

_LAYOUT_ONLY = frozenset({"bitcast", "transpose"})


def with_dot_operands_in_place(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of `producer` with such a transpose where the product stood, which it is made of.

    DotDecomposer (`xla/hlo/transforms/expanders/dot_decomposer.cc`) puts it in front of the product, a new
    user that takes the old one's place; in post-order, `order`, it comes in front of what the other operand
    of the product needs.
    """
    products = {u: product for u in users if (product := _product_behind(producer, u)) is not None}
    if len(products) in (0, len(users)):
        return users
    listed = [u for u in users if u not in products]
    for operand, product in products.items():
        place = next((k for k, u in enumerate(listed) if order[u] > order[product]), len(listed))
        listed.insert(place, operand)
    return listed


def _product_behind(producer: Instruction, user: Instruction) -> Instruction | None:
    if user.opcode != "transpose" or is_of_program(user) or user.op_name != producer.op_name:
        return None
    while user.opcode in _LAYOUT_ONLY and len(user.users) == 1:
        user = user.users[0]
    return user if is_dot_of_program(user) else None


def is_dot_of_program(x: Instruction) -> bool:
    """Is it what became of a matrix product, in a fusion or in a library's call?"""
    if x.opcode == "fusion":
        return has_dot(x)
    return x.opcode == "dot" or (x.opcode == "custom-call" and operation(x) == "dot_general")
