"""What read what the program reshaped, and reads what is in front of the reshape since."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program

_READ_IN_FRONT = {"broadcast", "slice"}


def with_reads_behind_reshape(
    source: Instruction, users: list[Instruction], passes: int
) -> list[Instruction]:
    """The users of what ReshapeMover computes in front of a reshape, with slices and broadcasts behind that.

    AlgebraicSimplifier reads a slice of the first dimension off what was reshaped
    (`TryToReorderSliceAndReshape`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and broadcasts
    that where the reshape was to dimensions of one, or from such (`HandleBroadcast`). `passes` is the first
    id that a pass gave.
    """
    if source.id < passes or not is_of_program(source):
        return users
    reshapes = [u for u in users if _is_reshape_of(u, source)]
    if len(reshapes) != 1:
        return users
    place = users.index(reshapes[0])
    behind = [u for u in users[:place] if u.opcode in _READ_IN_FRONT and u.id > source.id]
    return [*(u for u in users[:place] if u not in behind), *reshapes, *behind, *users[place + 1 :]]


def _is_reshape_of(x: Instruction, source: Instruction) -> bool:
    """Such a reshape has the name of what it reshapes."""
    if x.opcode != "bitcast" or not x.op_name or x.op_name != source.op_name:
        return False
    return x.shape.dimensions != source.shape.dimensions
