"""What chooses between values in a function, such as jit(_where), and in the derivative of that.

A function spreads the predicate that it is given. The derivative reads that, a result of the call, and the
program has all that the call was given in front: whatever the value chosen is read by, and if it is not.
CallInliner (`xla/service/call_inliner.cc`) leaves the derivative with the predicate alone.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant, is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import FUNCTIONS_OF_SCAN, is_of_derivative, scope
from hlofuse.pipelines.names import stack_frame

_BODY = "/while/body/"


def choice_in_front(x: Instruction) -> Instruction | None:
    """The choice that the derivative `x` of another one needed in the program; None if that is not told.

    That of a number was taken into a broadcast (AlgebraicSimplifier, `HandleSelect`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), the same one for all that have the predicate:
    there `x` tells, which chooses on, what was derived.
    """
    if x.opcode != "select" or not is_of_derivative(x) or not stack_frame(x):
        return None
    if _is_spread_in_call(x.operands[0]) or _is_given_zeros(x):
        return _derived(x)
    chosen = [o for o in x.operands[1:] if _is_spread_in_call(o)]
    derived = _derived(x) if len(chosen) == 1 else None
    for u in derived.users if derived is not None else ():
        if u.opcode == "select" and scope(u) == scope(chosen[0]) and _is_spread_in_call(u.operands[0]):
            return u
    return None


def _derived(x: Instruction) -> Instruction | None:
    """What `x` is the derivative of, in the same place and of the same predicate."""
    for u in x.operands[0].users:
        is_choice = (
            u.opcode == "select" and u.operands[0] is x.operands[0] and stack_frame(u) == stack_frame(x)
        )
        if is_choice and not is_of_derivative(u) and _derivative(scope(u) or "") == scope(x):
            return u
    return None


def _is_spread_in_call(x: Instruction) -> bool:
    return x.opcode == "broadcast" and bool(scope(x)) and not is_broadcast_of_constant(x)


def _is_given_zeros(x: Instruction) -> bool:
    """Does it choose zeros in the body of a while loop?

    The choice in front computes such zeros as well, and gives them on. The framework drops what a function is
    given and does not read, but not in such a body; that of a scan is a function.
    """
    _, body, behind = (x.op_name or "").rpartition(_BODY)
    if not body or behind.startswith(FUNCTIONS_OF_SCAN) or not scope(x):
        return False
    return any(map(is_constant, x.operands[1:]))


def _derivative(call: str) -> str:
    around, slash, own = call.rpartition("/")
    return f"{around}{slash}transpose({own})"
