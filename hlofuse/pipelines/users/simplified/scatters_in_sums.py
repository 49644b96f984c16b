"""Sums with what was scattered into zeros, as the gradient of what is taken at indices is.

AlgebraicSimplifier (end of `HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) scatters
into the other summand instead. The sum was all that read the scatter, which is there still; what reads the
sum was appended to its users, and the last of them took the place of the sum.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_scattered_sum(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `x`, if it is such a scatter: on the way back one adds to zeros."""
    is_into_sum = x.opcode == "scatter" and is_of_derivative(x) and not is_constant(x.operands[0])
    return last_in_front(users) if is_into_sum else users
