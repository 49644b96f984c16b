"""Divisions by a power, which became products with one of the negated exponent.

`HandleDivide` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes `a * b ** -c` of `a / b ** c`,
`a * exp(-b)` of `a / exp(b)` and `exp(a - b)` of `exp(a) / exp(b)`.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.names import is_of_program, operation


def with_negated_exponents_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of an exponent: what negates it is younger than the power that it was made for."""
    if not any(u.opcode == "power" for u in users):
        return users
    return sorted(users, key=_is_negated_for_power)


def with_made_for_quotients_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The same of an exponent of e, with what passes made behind the rest, by age.

    The power itself is still read: were it gone, the last user had taken its place.
    """
    if any(u.id < producer.id for u in users) or not any(map(_is_made_for_quotient, users)):
        return users
    if all(u.opcode != "exponential" for u in users):
        return users
    return sorted(users, key=lambda u: u.id if is_made_by_pass(u) or not is_of_program(u) else -1)


def _is_made_for_quotient(x: Instruction) -> bool:
    if x.opcode not in {"negate", "subtract"} or operation(x) != "div":
        return False
    return any(u.opcode == "exponential" for u in x.users)


def _is_negated_for_power(x: Instruction) -> bool:
    if x.opcode != "negate" or operation(x) == "neg":
        return False
    return bool(x.users) and all(u.opcode == "power" and x is u.operands[1] for u in x.users)
