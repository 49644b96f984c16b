"""Loops of one turn, of which the body is in the place of the loop.

WhileLoopSimplifier (`xla/hlo/transforms/simplifiers/while_loop_simplifier.cc`) does that as simplification
begins: it clones the whole body, operands first. What is in it is younger than what passes made before, and
still nothing that one made anew.
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_loop_of_one_turn

_CHECKPOINT = "/checkpoint/"
_NEAR = 4
"""How far apart ids may be in a body: bitcasts and numbers in between have gone, or become others."""


def last_unrolled(computation: Computation) -> int:
    """The greatest id of the longest row of what came out of such a loop, -1 for none; ids are XLA's."""
    ids = sorted(x.id for x in computation if x.opcode != "bitcast" and is_loop_of_one_turn(x))
    best, length, count = -1, 0, 0
    for k, number in enumerate(ids):
        count = count + 1 if k and number - ids[k - 1] <= _NEAR else 1
        if count > length:
            best, length = number, count
    return best


def is_stacked(source: Instruction) -> bool:
    """Is it what such a loop has stacked of one result, reshaped for that, which nothing in a loop reads?

    The last user took the place of the body's tuple, and then that of the update that put the result into the
    whole: AlgebraicSimplifier put the result in its place (`HandleDynamicUpdateSlice`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    if source.opcode != "bitcast" or not is_loop_of_one_turn(source):
        return False
    named = [u for u in source.users if u.op_name]
    return bool(named) and not any(map(is_loop_of_one_turn, named))


def is_made_again(user: Instruction) -> bool:
    """Is it of a derivative that makes all again that it needs of the loop (`jax.checkpoint`)?

    A bitcast bears the name of what it was put behind.
    """
    if user.opcode == "bitcast" and user.users:
        return all(map(is_made_again, user.users))
    return is_loop_of_one_turn(user) and _CHECKPOINT in (user.op_name or "")
