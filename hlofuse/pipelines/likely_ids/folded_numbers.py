"""What AlgebraicSimplifier makes the second time around, as numbers had to be folded first (ConstantFolding).

jax.numpy.remainder selects among numbers what it divides by, so that only then a remainder of a power of two
becomes an `and` (`HandleRemainder` of `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The rounds
of threefry add a number of the key and one of the round in a row: the first time around the two are added,
then the sum of both takes the place of the second addition (`HandleAdd`). A loop that goes backwards counts
from a number less another one, of which `HandleSubtract` makes the sum with the negated one. What
jax.numpy.var divides by is such a difference, too.
"""

from __future__ import annotations

from collections.abc import Collection

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_call
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming, number_in_name, operation

_SHIFTS = frozenset({"shift-left", "shift-right-logical"})
_VARIANCES = ("jit(_var)/div", "jvp(jit(_var))/div")
_ROUNDS = (2, 3, 5)
"""Numbers of rounds that are added alone, as a word of the key is zero: the first, and that of key 0."""


def is_of_folded_number(x: Instruction) -> bool:
    """Is it such an operation, or a number that was spread for some alone?"""
    if is_broadcast_of_constant(x):
        return bool(x.users) and (
            (not is_told_of_program(x) and any(_is_of_remainder(u) for u in x.users))
            or all(_is_sum_with(x, u) for u in x.users)
        )
    if _is_of_remainder(x) or _is_counted_backwards(x):
        return True
    return _is_sum_with_rotation(x) or any(_is_sum_with(o, x) for o in x.operands)


def _is_of_remainder(x: Instruction) -> bool:
    return (
        x.opcode in {"and", "compare", "negate", "select"}
        and operation(x) == "rem"
        and name_before_renaming(x).root == x.opcode
        and "remainder" in (x.op_name or "")
    )


def _is_counted_backwards(x: Instruction) -> bool:
    """Had it been another difference of which a number was subtracted as well?"""
    return (
        x.opcode == "subtract"
        and operation(x) == "sub"
        and name_before_renaming(x).root == x.opcode
        and x.operands[0].opcode == "constant"
    )


def is_sum_with_last(x: Instruction, named: Collection[Instruction]) -> bool:
    """Is a number added to another that is not the front end's, as it has a higher number than all of those?

    `named` are the front end's instructions.
    """
    assert x.computation is not None
    if x.shape.rank or x.opcode != "add" or x.operands[1].opcode != "constant":
        return False
    others = (c for c in x.computation if c.opcode == "constant" and c in named)
    return number_in_name(x.operands[1]) > max(map(number_in_name, others), default=0)


def is_of_difference(x: Instruction) -> bool:
    """Was the first of two numbers in such a sum subtracted? Negated it had to be folded ahead of the sum."""
    if x.opcode != "add" or x.operands[1].opcode != "constant":
        return False
    return any(u is not x and u.opcode == "add" and operation(u) == "sub" for u in x.operands[0].users)


def is_variance(x: Instruction) -> bool:
    """Is it the quotient of a jax.numpy.var? What it divides by is a number when others were folded."""
    return (
        x.opcode == "multiply"
        and (x.op_name or "").endswith(_VARIANCES)
        and any(o.opcode == "reduce" and operation(_converted(o.operands[0])) == "square" for o in x.operands)
    )


def _converted(x: Instruction) -> Instruction:
    while x.opcode in {"bitcast", "convert"}:
        x = x.operands[0]
    return x


def _is_sum_with(number: Instruction, x: Instruction) -> bool:
    return x.opcode == "add" and is_spread_anew_for(number, x)


def _is_sum_with_rotation(x: Instruction) -> bool:
    """Is the number that a round adds one by which others rotate, and none that the program adds itself?"""
    if x.opcode != "add" or not is_of_call(x) or x.operands[0].opcode != "xor":
        return False
    number = x.operands[1]
    if not is_broadcast_of_constant(number) or not any(u.opcode in _SHIFTS for u in number.users):
        return False
    return number.operands[0].literal.scalar not in _ROUNDS


def is_spread_anew_for(number: Instruction, x: Instruction) -> bool:
    """Did a pass spread the number in the place of those that `x`, of a call, had?"""
    return (
        is_of_call(x)
        and is_told_of_program(x)
        and is_broadcast_of_constant(number)
        and number.op_name == x.op_name
        and name_before_renaming(number).root == number.opcode
    )


def is_spread_for_another(x: Instruction) -> bool:
    """Does the program spread the same number for the same operation of another array?"""
    others = (u for u in x.operands[0].users if u.opcode == "broadcast" and u.op_name == x.op_name)
    return any(name_before_renaming(u).root != u.opcode for u in others)
