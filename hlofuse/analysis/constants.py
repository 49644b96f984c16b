"""Values that are one constant everywhere."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction


def is_broadcast_of_constant(x: Instruction) -> bool:
    """Is every element of it the same constant?"""
    return x.opcode == "broadcast" and x.operands[0].opcode == "constant"


def is_constant(x: Instruction) -> bool:
    """Is it, or every element of it, written in the program?"""
    return x.opcode == "constant" or is_broadcast_of_constant(x)
