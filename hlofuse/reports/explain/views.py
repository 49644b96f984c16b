"""Views only name a value that is there already: passed over when asking who computes and who reads."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir.graph import Instruction

_VIEWS = frozenset({"bitcast", "get-tuple-element"})


def is_view(instruction: Instruction) -> bool:
    """It computes nothing and moves nothing."""
    return instruction.opcode in _VIEWS


def through_views(instruction: Instruction) -> Instruction:
    """What computes a value that is only seen differently here."""
    while is_view(instruction) and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def readers(instruction: Instruction) -> Iterator[Instruction]:
    """Who reads its value, directly or as a view; each once, in the order of users."""
    stack, seen = [instruction], {instruction}
    while stack:
        for user in stack.pop().users:
            if user not in seen:
                seen.add(user)
                if is_view(user):
                    stack.append(user)
                else:
                    yield user


def view_read(producer: Instruction, consumer: Instruction) -> Instruction | None:
    """The user of `producer` through which `consumer` reads it: itself, or a view; None if it does not."""
    for operand in consumer.operands:
        user = consumer
        while operand is not producer and is_view(operand) and operand.operands:
            user, operand = operand, operand.operands[0]
        if operand is producer:
            return user
    return None
