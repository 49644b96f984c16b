"""Divisions by a power, which became products with one of the negated exponent.

`HandleDivide` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes `a * b ** -c` of `a / b ** c`.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


def with_negated_exponents_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of an exponent: what negates it is younger than the power that it was made for."""
    if not any(u.opcode == "power" for u in users):
        return users
    return sorted(users, key=_is_negated_for_power)


def _is_negated_for_power(x: Instruction) -> bool:
    if x.opcode != "negate" or operation(x) == "neg":
        return False
    return bool(x.users) and all(u.opcode == "power" and x is u.operands[1] for u in x.users)
