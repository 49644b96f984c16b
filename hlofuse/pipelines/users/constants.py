"""Values that depend on nothing."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def is_made_of_nothing(x: Instruction) -> bool:
    """Is it, or every element of it, a constant or a number of its own place?"""
    return x.opcode == "iota" or is_constant(x)


def is_constant(x: Instruction) -> bool:
    """Is it, or every element of it, written in the program?"""
    return x.opcode == "constant" or is_broadcast_of_constant(x)


def is_broadcast_of_constant(x: Instruction) -> bool:
    """Is every element of it the same constant?"""
    return x.opcode == "broadcast" and x.operands[0].opcode == "constant"
