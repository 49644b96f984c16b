"""Values with a margin put in front, of which a slice was that margin alone.

AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes a broadcast of the scalar
of such a slice (`HandleSlice`), and of a concatenate that begins with a broadcast of a scalar a pad with that
(`HandleConcatenate`). So it is where a function computes of all but the first element and puts that in front.
"""

from __future__ import annotations

from hlofuse.ir.attributes.window import PaddingConfig
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_at


def with_last_in_place_of_margin(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The `users` of a pad with the last where the slice stood: in front of all slices of that function."""
    slices = [u for u in users if u.opcode == "slice" and operation(u) == "slice"]
    if producer.opcode != "pad" or not slices or not _has_margin_in_front(producer):
        return users
    first = min(slices, key=order.__getitem__)
    if not any(_is_given_back(u, first) for u in producer.operands[1].users if u is not producer):
        return users
    return last_at(users, users.index(first))


def _is_given_back(pad: Instruction, slice_: Instruction) -> bool:
    """Does the function that `slice_` is of put the margin in front of a result, with `pad`?"""
    if pad.opcode != "pad" or operation(pad) != "concatenate" or stack_frame(pad) != stack_frame(slice_):
        return False
    return _has_margin_in_front(pad)


def _has_margin_in_front(pad: Instruction) -> bool:
    padding = pad.attributes["padding"]
    assert isinstance(padding, PaddingConfig)
    added = [(d.low, d.high, d.interior) for d in padding if (d.low, d.high, d.interior) != (0, 0, 0)]
    return len(added) == 1 and added[0][0] > 0 and added[0][1:] == (0, 0)
