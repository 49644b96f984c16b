"""Broadcasts of a number that are equal only since what they were for was computed in front of a reshape."""

from __future__ import annotations

from hlofuse.analysis.constants import is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_program, operation

_BOUNDS = frozenset({"ge", "le"})


def with_moved_behind(broadcast: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a broadcast of a number with those behind that ReshapeMover made.

    It reshapes the other operands too (`xla/hlo/transforms/simplifiers/reshape_mover.cc`), and
    AlgebraicSimplifier makes a broadcast of the reshape of one. HloCSE had merged what the program has equal
    by then, and appends the users of the new one when it runs again. Ids have to be XLA's, but for what
    reads the broadcast of a constant.
    """
    if broadcast.opcode != "broadcast" or is_made_by_pass(broadcast):
        return users
    number = broadcast.operands[0]
    if number.shape.rank:
        return users
    if is_constant(number):
        is_of_bound = operation(broadcast) in _BOUNDS
        return users if is_of_bound else sorted(users, key=_is_bound_of_index)
    return sorted(users, key=lambda u: _was_moved(u, broadcast))


def _is_bound_of_index(x: Instruction) -> bool:
    """Does it compare an index of a gather or scatter with a bound?

    The framework gives indices a dimension of one for that, which ReshapeMover takes away.
    """
    if x.opcode != "compare" or operation(x) not in _BOUNDS:
        return False
    index = x.operands[0]
    if index.opcode not in ELEMENTWISE_OPCODES:
        return False
    return any(
        v.opcode in {"gather", "scatter"} and v.operands[0] is not o
        for u in index.users
        for o, readers in [(u, u.users) if u.opcode == "bitcast" else (index, [u])]
        for v in readers
    )


def _was_moved(user: Instruction, broadcast: Instruction) -> bool:
    if user.opcode not in ELEMENTWISE_OPCODES or user.id < broadcast.id:
        return False
    return is_made_by_pass(user) and is_of_program(user)
