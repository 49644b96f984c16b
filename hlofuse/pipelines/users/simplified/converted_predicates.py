"""Predicates that were made numbers to multiply by them."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.common.ages import was_product_with_predicate


def with_last_in_place_of_numbers(predicate: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a `predicate`, given those the program would have.

    Of each product simplification makes a choice, appended to who reads the predicate. The convert goes with
    the last of its products, and the last user takes its place (`HandleMultiply`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). Products of one place in the source shared it.
    """
    if predicate.shape.element_type != "pred":
        return users
    choices = [u for u in users if _was_product(u, predicate)]
    if len(choices) < 2:
        return users
    listed: list[Instruction | int] = []
    for user in users:
        of = stack_frame(user) if user in choices else user
        if of not in listed:
            listed.append(of)
    left = [stack_frame(u) for u in choices]
    for choice in choices:
        listed.append(choice)
        left.remove(stack_frame(choice))
        if stack_frame(choice) not in left:
            listed[listed.index(stack_frame(choice))] = listed.pop()
    return [u for u in listed if isinstance(u, Instruction)]


def _was_product(x: Instruction, predicate: Instruction) -> bool:
    if not was_product_with_predicate(x):
        return False
    return x.operands[0] is predicate and predicate not in x.operands[1:]
