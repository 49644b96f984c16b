"""Reductions of what a narrow value was converted and reshaped to.

ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moves the convert in front of the reshape. A
reduction of that AlgebraicSimplifier makes anew, of the convert itself (`HandleReduce`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): it stands behind the reshape, which was first.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


def with_reductions_behind_reshape(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of a narrow value in the program's order, with those reductions behind the reshape."""
    reshape = next(
        (u for u in users if u.opcode == "bitcast" and operation(u) == "convert_element_type"), None
    )
    if reshape is None:
        return users
    behind = [u for u in users if u.opcode == "reduce" and _reads_alike(u, producer, reshape)]
    first = [u for u in users[: users.index(reshape)] if u not in behind]
    return [*first, reshape, *(u for u in users if u not in first and u is not reshape)]


def _reads_alike(reduction: Instruction, producer: Instruction, reshape: Instruction) -> bool:
    """Is what the reduction adds up of the `producer` whole dimensions of the `reshape` as well?"""
    reduced, of = reduction.dimensions, producer.shape.dimensions
    if not reduced or [*reduced] != [*range(reduced[0], reduced[-1] + 1)]:
        return False
    cuts = [1, *accumulate(of, mul)]
    return {cuts[reduced[0]], cuts[reduced[-1] + 1]} <= {1, *accumulate(reshape.shape.dimensions, mul)}
