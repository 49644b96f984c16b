"""Values that are reshaped, or read as another type, of which one reader reshapes them again.

One is what ReshapeMover computes in front of a reshape.

AlgebraicSimplifier makes one of both (`HandleReshape`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the value has a user more, at the end, and of those
of the reshape in front the last takes the place of the other one, which the walk had met first.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_in_front, without


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


def with_reshaped_bits_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of a value whose bits are read as another type, with that behind which is reshaped as well.

    `HandleBitcastConvert` makes a bitcast of the one, in its place. The other was a bitcast of that then,
    and `HandleBitcast` makes it one of the value.
    """
    bits = [u for u in users if u.opcode == "bitcast" and operation(u) == "bitcast_convert_type"]
    if not any(_is_as_converted(u, producer) for u in bits):
        return users
    return sorted(users, key=lambda u: u in bits and not _is_as_converted(u, producer))


def with_last_in_place_of_reshaped_bits(
    bits: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The `users` of such bits, of which the last took the place of what is a bitcast of the value now.

    `order` is the post-order.
    """
    if bits.opcode != "bitcast" or operation(bits) != "bitcast_convert_type":
        return users
    (x,) = bits.operands
    if not _is_as_converted(bits, x):
        return users
    gone = [u for u in x.users if u.opcode == "bitcast" and u.op_name == bits.op_name and u is not bits]
    gone = [u for u in gone if stack_frame(u) == stack_frame(bits) and not _is_as_converted(u, x)]
    return without(sorted([*users, *gone], key=order.__getitem__), gone) if gone else users


def _is_as_converted(bits: Instruction, x: Instruction) -> bool:
    """Has it the dimensions that the framework gives it, one more or less where types differ in size?"""
    if not x.shape.is_array or bits.shape.element_type == x.shape.element_type:
        return False
    shared = min(bits.shape.rank, x.shape.rank)
    if bits.shape.dimensions[:shared] != x.shape.dimensions[:shared]:
        return False
    return abs(bits.shape.rank - x.shape.rank) <= 1


def _reshaped_twice(x: Instruction, passes: int) -> Instruction | None:
    """The one of two reshapes of `x` that has less dimensions than it; the other one has more."""
    if x.id < passes or x.opcode not in ELEMENTWISE_OPCODES or len(x.users) != 2:
        return None
    if any(u.opcode != "bitcast" or not u.op_name or u.op_name != x.op_name for u in x.users):
        return None
    behind, front = sorted(x.users, key=lambda u: u.shape.rank)
    return behind if behind.shape.rank < x.shape.rank < front.shape.rank else None
