"""Broadcasts of scalars that were reshaped.

AlgebraicSimplifier makes one broadcast of the scalar instead (`HandleReshape`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), which comes behind the one that the program has.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program


def with_reshaped_behind(scalar: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `scalar` where both broadcasts, and nothing else, read it. Ids have to be XLA's.

    A number made wider or narrower for its readers was given to them anew, and is left alone.
    """
    if scalar.opcode == "convert" or scalar.shape.rank or [u.opcode for u in users] != ["broadcast"] * 2:
        return users
    written, reshaped = sorted(users, key=is_of_program, reverse=True)
    if not is_of_program(written) or is_of_program(reshaped) or written.op_name != reshaped.op_name:
        return users
    return [written, reshaped] if written.id < reshaped.id else users
