"""Scalars that were stacked, in the shape of the only element of an array."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction


def with_stacks_behind_scalar(value: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of what ReshapeMover made of elements (`xla/hlo/transforms/simplifiers/reshape_mover.cc`).

    Its first user is the reshape to the scalar that the program computes, in a batch or not. A concatenate
    reads an array of that scalar, until the two reshapes are found to be none (`HandleReshape`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    if value.opcode not in ELEMENTWISE_OPCODES:
        return users
    stacks = [u for u in users if u.opcode == "concatenate"]
    scalars = [u for u in users if any(_is_without_dimension(u, x) for x in stacks)]
    return [*scalars, *stacks] if len(scalars) + len(stacks) == len(users) else users


def _is_without_dimension(bitcast: Instruction, stack: Instruction) -> bool:
    """Is it a reshape of the same, without the dimension of the `stack`, of one element?"""
    if bitcast.opcode != "bitcast" or not stack.dimensions:
        return False
    dimensions = list(bitcast.operands[0].shape.dimensions)
    return dimensions.pop(stack.dimensions[0]) == 1 and list(bitcast.shape.dimensions) == dimensions
