"""Remainders of divisions by a power of two: bits, which are given the sign of the value again.

AlgebraicSimplifier compares the value with zero, negates it and chooses (`TryRemainderToAnd`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), behind all that uses it. It makes the zeros
anew for each, and the next CSE makes one of them and of those that were there.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import INTEGER_TYPES
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.ages import is_sign_of_remainder
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.duplicates.normalized_indices import with_sign_of_bounded_gone


def with_choice_in_place_of_remainder(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of the value: the remainder was one of them, and the choice, the last, took its place.

    A quotient by the same power (`HandleDivide`) has the like, as `//` has both. HloCSE keeps the one of the
    remainder, and the last of what is left takes the place of the other choice: ahead of what was computed
    in between, or behind all.
    """
    choice = next((u for u in users if _is_by_sign(u, producer, users)), None)
    if choice is None:
        return users
    made = choice.operands[:2]
    place = min(users.index(u) for u in (*made, choice))
    others = [u for u in users if u is not choice and u not in made]
    if any(operation(u) == "div" for u in choice.users):
        sign, negated = made
        if not others[place:]:
            return [*others, choice, negated, sign]
        return [*others[:place], negated, *others[place:], choice, sign]
    return [*others[:place], choice, *others[place:], *made]


def with_last_in_place_of_remainder(divisor: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `divisor` that was spread for a remainder, and so was read by that first."""
    return last_in_front(users) if is_power_divided_by(divisor) else users


def is_power_divided_by(x: Instruction) -> bool:
    """Is it a power of two, spread for a remainder of integers that is there no more?"""
    if operation(x) != "rem" or not is_broadcast_of_constant(x) or x.shape.element_type not in INTEGER_TYPES:
        return False
    value = x.operands[0].literal.scalar
    is_power = isinstance(value, int) and value > 0 and value & (value - 1) == 0
    return is_power and all(u.opcode != "remainder" for u in x.users)


def with_signs_behind(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of zeros: what remainders compare with them comes behind, but for what is read first."""
    if not is_broadcast_of_constant(producer):
        return users
    signs = [u for u in users if is_sign_of_remainder(u, producer)]
    others = [u for u in users if u not in signs]
    if not others:
        return users
    first = users.index(others[0])
    return [*users[:first], *with_sign_of_bounded_gone(producer, others, order), *signs[first:]]


def _is_by_sign(x: Instruction, value: Instruction, users: list[Instruction]) -> bool:
    if x.opcode != "select" or operation(x) != "rem" or x.operands[2] is not value:
        return False
    sign, negated, _ = x.operands
    return sign in users and sign.opcode == "compare" and negated in users and negated.opcode == "negate"
