"""Reductions in functions that were calls, of which the result was reshaped (keepdims) before it was used."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, scope


def with_moved_in_function_in_front(reduction: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a reduction with the last one in front, if ReshapeMover made all of them.

    What `moved_reshapes` says of ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) outside of
    functions holds for these. Who was inlined with the reduction stands next to it; what is younger than
    another function's clones was made later. Ids have to be XLA's.
    """
    function = scope(reduction)
    if reduction.opcode != "reduce" or not function or len(users) < 2:
        return users
    if any(u.opcode not in ELEMENTWISE_OPCODES or not is_of_program(u) for u in users):
        return users
    first, *_, last = by_age = sorted(users, key=lambda u: u.id)
    if last.id - first.id >= len(users) or all(scope(u) != function for u in users):
        return users
    return [last, *by_age[:-1]] if _is_inlined_between(reduction, first, function) else users


def _is_inlined_between(start: Instruction, end: Instruction, function: str) -> bool:
    """Was another function inlined between the two?"""
    between = (x for x in start.computation or () if start.id < x.id < end.id and is_of_program(x))
    return any(s and not s.startswith(function) for s in map(scope, between))
