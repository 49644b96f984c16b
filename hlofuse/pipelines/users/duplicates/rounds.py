"""Rounds of simplification, in each of which HloCSE came once.

AlgebraicSimplifier and, behind it, ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) take
turns. ReshapeMover makes all operations it moves anew, one after the other, and reshapes what they are to
read; it is AlgebraicSimplifier that makes another broadcast of that in its next turn (`HandleBroadcast`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). Ids have to be XLA's.
"""

from __future__ import annotations

from typing import TypeAlias

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program

Rounds: TypeAlias = "dict[Instruction, int]"
"""By what a pass made the round of CSE that came to what it reads."""


def rounds_of(computation: Computation, passes: int) -> Rounds:
    """Those of a `computation`; `passes` is the first id that a pass gave.

    What was moved in one turn does not read another of that turn, of which a reshape was to be seen only.
    They are over when layouts are normalized, which brings bitcasts.
    """
    rounds: Rounds = {}
    simplified, start = 0, None
    for x in sorted((x for x in computation if x.id >= passes), key=lambda x: x.id):
        if x.opcode == "bitcast":
            break
        if start is not None and (
            x.opcode not in ELEMENTWISE_OPCODES or any(start <= o.id < x.id for o in x.operands)
        ):
            simplified, start = simplified + 1, None
        if start is None and is_clone(x):
            start = x.id
        rounds[x] = simplified + (start is not None)
    return rounds


def is_clone(x: Instruction) -> bool:
    """Is it, made by a pass, what ReshapeMover moved? AlgebraicSimplifier calls what it makes otherwise."""
    return x.opcode in ELEMENTWISE_OPCODES and is_of_program(x)
