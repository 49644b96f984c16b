"""Variances, which `jax.numpy.var` chooses over a number that is none if it divides by more than zero."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import scope
from hlofuse.pipelines.users.common.holes import last_in_front

_VARIANCES = ("jit(_var)", "jit(_var))")


def with_last_in_place_of_choice(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a variance, which had been those of the choice.

    The predicate of that is known: AlgebraicSimplifier (`HandleSelect`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) appended them to the users of the variance, and
    the last took the place of the choice. One that kept its dimensions was reshaped for that, and the reshape
    given its users in turn.
    """
    call = scope(x)
    if not call or not call.endswith(_VARIANCES) or x.opcode in {"bitcast", "broadcast", "constant"}:
        return users
    if "transpose(" in call:
        return users  # it is the derivative by what the variance is of
    if any(not u.op_name or f"{scope(u)}/".startswith(f"{call}/") for u in users):
        return users
    return last_in_front(users)
