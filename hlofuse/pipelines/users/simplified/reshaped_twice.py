"""Values that ReshapeMover computes in front of a reshape of which one reader reshapes it again.

AlgebraicSimplifier makes one of both (`HandleReshape`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the value has a user more, at the end, and of those
of the reshape in front the last takes the place of the other one, which the walk had met first.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import last_in_front


def with_reshaped_twice(producer: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The `users` of such a value, or of the reshape in front; `passes` is the first id that a pass gave."""
    behind = _reshaped_twice(producer, passes)
    if behind is not None:
        return sorted(users, key=lambda u: u is behind)
    if producer.opcode == "bitcast" and len(users) > 1:
        behind = _reshaped_twice(producer.operands[0], passes)
        if behind is not None and behind is not producer:
            return last_in_front(users)
    return users


def _reshaped_twice(x: Instruction, passes: int) -> Instruction | None:
    """The one of two reshapes of `x` that has less dimensions than it; the other one has more."""
    if x.id < passes or x.opcode not in ELEMENTWISE_OPCODES or len(x.users) != 2:
        return None
    if any(u.opcode != "bitcast" or not u.op_name or u.op_name != x.op_name for u in x.users):
        return None
    behind, front = sorted(x.users, key=lambda u: u.shape.rank)
    return behind if behind.shape.rank < x.shape.rank < front.shape.rank else None
