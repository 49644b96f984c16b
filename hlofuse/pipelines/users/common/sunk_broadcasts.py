"""Operations on what was broadcast, made anew in front of the broadcast.

See `TryToSinkBroadcastAfterOpWithUniqueNonScalarOperand` and `HandleBroadcast`
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). The broadcast of each result has the metadata of
the one there was.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import stack_frame


def was_sunk(x: Instruction, spread: Instruction) -> bool:
    """Is what `x` computes broadcast as `spread` is, and where that was written?"""
    return any(
        u.opcode == "broadcast"
        and u.op_name == spread.op_name
        and stack_frame(u) == stack_frame(spread)
        and u.dimensions == spread.dimensions
        for u in x.users
    )
