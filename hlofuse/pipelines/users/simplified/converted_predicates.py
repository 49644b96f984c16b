"""Predicates that were made numbers to multiply by them."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.ages import was_product_with_predicate
from hlofuse.pipelines.users.common.holes import last_at
from hlofuse.pipelines.users.common.visits import Uses


def with_last_in_place_of_numbers(
    predicate: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of such a `predicate`, given those the program would have.

    Of each product simplification makes a choice, appended to who reads the predicate. The convert goes with
    the last of its products, and the last user takes its place (`HandleMultiply`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). Products of one place in the source shared it,
    unless a function is called there again and again: each had its own predicate then, and HloCSE made them
    one in the order of its walk (`xla/service/hlo_cse.cc`).
    """
    if predicate.shape.element_type != "pred":
        return users
    # Where something else reads one of a place still, each operation there had its own.
    kept = {_kind(u) for u in users if u.opcode == "convert" and operation(u) == "convert_element_type"}
    converts: dict[Instruction, Hashable] = {
        u: u.name if _kind(u) in kept else _kind(u) for u in users if _was_product(u, predicate)
    }
    if len(converts) < 2:
        return users
    written = {(u.op_name, stack_frame(u)) for u in users}
    if outermost_call(predicate) and len(written) == 1 and stack_frame(users[0]) == stack_frame(predicate):
        return sorted(users, key=lambda u: uses[predicate, u])
    listed: list[Hashable] = []
    for user in users:
        of = converts.get(user, user)
        if of not in listed:
            listed.append(of)
    left = [*converts.values()]
    for choice, convert in converts.items():
        listed.append(choice)
        left.remove(convert)
        if convert not in left:
            listed[listed.index(convert)] = listed.pop()
    return [u for u in listed if isinstance(u, Instruction)]


def with_last_in_place_of_product(
    number: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a `number` made of a predicate, given that the product by it is a choice by that now.

    The last user took its place. A library's product comes behind all, as it was made last. `order` is the
    post-order.
    """
    if number.opcode != "convert" or number.operands[0].shape.element_type != "pred":
        return users
    if users[-1].opcode in {"custom-call", "fusion"}:
        return users
    chosen = [u for u in number.operands[0].users if _was_product(u, number.operands[0])]
    if len(chosen) != 1:
        return users
    return last_at(users, sum(order[u] < order[chosen[0]] for u in users))


def _kind(x: Instruction) -> Hashable:
    return stack_frame(x), x.shape.element_type


def _was_product(x: Instruction, predicate: Instruction) -> bool:
    if not was_product_with_predicate(x):
        return False
    return x.operands[0] is predicate and predicate not in x.operands[1:]
