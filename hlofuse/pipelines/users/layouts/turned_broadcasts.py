"""Broadcasts that some readers want in another layout.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes a broadcast anew where it was, and puts a
transpose or a bitcast behind it for whoever reads it otherwise. `SimplifyTransposeOfBroadcast`
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes each of those a broadcast of its own.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_turned_behind(value: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of what is broadcast, the broadcast last that was a transpose of another among them.

    The latter was made anew in its place and has lost its name, the former took over that of the transpose.
    Ids have to be XLA's; those of what passes made anew are not below `passes`.
    """
    if not value.shape.is_array or not value.shape.rank:
        return users
    broadcasts = [u for u in users if u.opcode == "broadcast" and u.id >= passes]
    unnamed = [u for u in broadcasts if not u.op_name]
    turned = [u for u in broadcasts if u.op_name and any(_is_turned(u, v) for v in unnamed)]
    return [*(u for u in users if u not in turned), *turned]


def _is_turned(x: Instruction, y: Instruction) -> bool:
    """Do both hold the same elements, in another order of the dimensions?"""
    dimensions = x.shape.dimensions, y.shape.dimensions
    return dimensions[0] != dimensions[1] and sorted(dimensions[0]) == sorted(dimensions[1])
