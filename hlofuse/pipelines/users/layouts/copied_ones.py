"""Values that were copied to a layout which differs in dimensions of one only.

LayoutAssignment puts the copy where its reader was among the users. LayoutNormalization makes a transpose of
it, AlgebraicSimplifier a bitcast of what was copied (`HandleTranspose`, `HandleReshape`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the last user takes the place of the copy.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import last_at


def with_last_in_place_of_copied_ones(
    bitcast: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a `bitcast` beside which there is the one that its copy became."""
    if bitcast.opcode != "bitcast" or len(users) < 2:
        return users
    copies = [u for u in bitcast.operands[0].users if _is_copy(u, bitcast)]
    if len(copies) != 1 or not copies[0].users:
        return users
    read = min(order[u] for u in copies[0].users)
    return last_at(users, sum(order[u] < read for u in users))


def _is_copy(x: Instruction, bitcast: Instruction) -> bool:
    """Is it of the same dimensions in another order, all but ones in the same, and younger?"""
    if x.opcode != "bitcast" or x.op_name != bitcast.op_name or x.id < bitcast.id:
        return False
    some, others = x.shape, bitcast.shape
    is_moved = some.dimensions != others.dimensions and sorted(some.dimensions) == sorted(others.dimensions)
    return is_moved and [*some.true_dimensions] == [*others.true_dimensions]
