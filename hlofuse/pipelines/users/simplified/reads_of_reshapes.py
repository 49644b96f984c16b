"""What read what the program reshaped, and reads what is in front of the reshape since."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.holes import last_at
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert

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
    if len(reshapes) == 2:
        again = [u for u in reshapes if any(_is_reshaped_again(u, other) for other in reshapes)]
        return [*(u for u in users if u not in again), *again]
    if len(reshapes) != 1:
        return users
    place = users.index(reshapes[0])
    behind = [u for u in users[:place] if u.opcode in _READ_IN_FRONT and u.id > source.id]
    return [*(u for u in users[:place] if u not in behind), *reshapes, *behind, *users[place + 1 :]]


def with_last_in_place_of_reshaped_again(
    reshape: Instruction, users: list[Instruction], uses: Uses
) -> list[Instruction]:
    """The users of a `reshape` that ReshapeMover put behind its source, with one less that reshaped it on.

    AlgebraicSimplifier had left out the dimensions of one for a broadcast; of two reshapes in turn it makes
    one, of the source (`HandleReshape`), behind the other there. The last takes the place of it here.
    """
    source = reshape.operands[0] if reshape.opcode == "bitcast" else reshape
    if not _is_reshape_of(reshape, source) or reshape.shape.true_dimensions == source.shape.true_dimensions:
        return users  # where they differ in nothing else the program may have reshaped it for each
    again = [u for u in source.users if _is_reshaped_again(u, reshape)]
    if len(again) != 1:
        return users
    met = min(uses[again[0], u] for u in again[0].users)
    return last_at(users, sum(uses[reshape, u] < met for u in users))


def _is_reshaped_again(x: Instruction, reshape: Instruction) -> bool:
    """Is it what broadcasts read of the same source, less the dimensions of one?"""
    if not _is_reshape_of(x, reshape.operands[0]) or x.op_name != reshape.op_name:
        return False
    if x.shape.rank == reshape.shape.rank or list(x.shape.dimensions) != reshape.shape.true_dimensions:
        return False
    return bool(x.users) and all(u.opcode == "broadcast" or is_inserted_convert(u) for u in x.users)


def _is_reshape_of(x: Instruction, source: Instruction) -> bool:
    """Such a reshape has the name of what it reshapes."""
    if x.opcode != "bitcast" or not x.op_name or x.op_name != source.op_name:
        return False
    return x.shape.dimensions != source.shape.dimensions
