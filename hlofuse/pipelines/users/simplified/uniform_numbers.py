"""Uniform random numbers between zero and something, to which the program adds the zero, or scales by one.

They are `max(minval, numbers * (maxval - minval) + minval)`, with the one broadcast of `minval` for both.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.holes import without

_FUNCTION = "jit(_uniform"


def with_sums_of_zero_gone(zero: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a broadcast: each sum had been the next user behind its maximum.

    AlgebraicSimplifier drops them in turn (`HandleAdd`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), after HloCSE made one of equal broadcasts.
    """
    bounded = [u for u in users if _is_bounded_by(u, zero)]
    if not bounded or not is_broadcast_of_constant(zero) or zero.operands[0].literal.scalar != 0:
        return users
    listed = [(u, is_sum) for u in users for is_sum in ((False, True) if u in bounded else (False,))]
    return [u for u, _ in without(listed, [(u, True) for u in bounded])]


def is_scale_of_one(x: Instruction) -> bool:
    """Is it a one that was spread for the product with it, which is gone?

    What else reads it had a one of its own until HloCSE, ahead of that (`HandleMultiply`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    is_scale = is_broadcast_of_constant(x) and _is_of_function(x, "mul")
    return is_scale and x.operands[0].literal.scalar == 1


def _is_bounded_by(x: Instruction, zero: Instruction) -> bool:
    if x.opcode != "maximum" or x.operands[0] is not zero or not is_of_program(x):
        return False
    return _is_of_function(x, "max") and not _are_of_scalars(x, x.op_name or "")


def _is_of_function(x: Instruction, written: str) -> bool:
    """Is it what is `written` in the function, be that derived or batched as a whole?"""
    function, _, own = (x.op_name or "").rpartition("/")
    return own == written and function.rstrip(")").endswith(_FUNCTION)


def _are_of_scalars(x: Instruction, op_name: str) -> bool:
    """Are they of a batch, one for each? The zero is spread for them at once, and the sum goes ahead of CSE.

    Otherwise it is reshaped first, to as many dimensions as the numbers have.
    """
    return op_name.count("vmap(") == len(x.shape.dimensions)
