"""Values of which margins are taken away: the gradients of what was padded, in parts.

The gradient of a pad is a pad by less than nothing. `HandlePad` of AlgebraicSimplifier
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes a slice of it, of the value padded by
nothing. Pads by nothing are equal, HloCSE keeps one, and when that goes the slices come to read the value.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.floats.inserted_converts import readers_past_inserted


def with_trimmed_in_place_of_pad(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The `users` with the slices behind the others and the last of them where the first pad stood.

    A pad by nothing goes at once, and is not merged, if the slice is met again from a second reader.
    """
    slices = sorted(filter(_is_of_pad, users), key=order.__getitem__)
    if (
        len(slices) < 2
        or len({s.op_name for s in slices}) > 1
        or any(len(readers_past_inserted(s)) > 1 for s in slices)
    ):
        return users
    kept, *merged = slices
    listed = [producer if u is kept else u for u in users]
    return without([*without(listed, merged), *slices], [producer])


def _is_of_pad(x: Instruction) -> bool:
    if x.opcode != "slice" or operation(x) != "pad":
        return False
    cut, sizes = x.attributes["slice"], x.operands[0].shape.dimensions
    starts = any(cut.starts)
    return starts != any(limit < size for limit, size in zip(cut.limits, sizes, strict=True))
