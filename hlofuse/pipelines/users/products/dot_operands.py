"""Transposes and reshapes that put the dimensions of a matrix product's operand in order."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.fusions import has_dot
from hlofuse.pipelines.users.common.holes import behind_last

_LAYOUT_ONLY = frozenset({"bitcast", "transpose"})


def with_dot_operands_in_place(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of `producer` with what a product is made of, in other dimensions, where that stood.

    DotDecomposer (`xla/hlo/transforms/expanders/dot_decomposer.cc`) puts it in front of the product, a new
    user that takes the old one's place; in post-order, `order`, it comes in front of what the other operand
    of the product needs.
    """
    products = {u: product for u in users if (product := _product_behind(producer, u)) is not None}
    listed = [u for u in users if u not in products or u.opcode != "transpose"]
    if not products or not listed:
        return users
    for operand, product in products.items():
        if operand.opcode == "transpose":
            place = next((k for k, u in enumerate(listed) if order[u] > order[product]), len(listed))
            listed.insert(place, operand)
    for operand, product in products.items():
        if operand.opcode == "bitcast":
            needed = {u for u in listed if order[operand] < order[u] < order[product]}
            listed = behind_last(listed, operand, needed.__contains__)
    return listed


def _product_behind(producer: Instruction, user: Instruction) -> Instruction | None:
    if user.opcode not in _LAYOUT_ONLY or is_of_program(user) or user.op_name != producer.op_name:
        return None
    while user.opcode in _LAYOUT_ONLY and len(user.users) == 1:
        user = user.users[0]
    return user if is_dot_of_program(user) else None


def is_dot_of_program(x: Instruction) -> bool:
    """Is it what became of a matrix product, in a fusion or in a library's call?"""
    if x.opcode == "fusion":
        return has_dot(x)
    return x.opcode == "dot" or (x.opcode == "custom-call" and operation(x) == "dot_general")
