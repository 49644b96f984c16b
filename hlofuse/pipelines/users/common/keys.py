"""What random bits are made of: words of a key, and rotations."""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation

_TURNS = frozenset({"shift-left", "shift-right-logical"})


def is_turn(x: Instruction) -> bool:
    """Is it half of a rotation?"""
    return x.opcode in _TURNS


def is_word_of_key(x: Instruction) -> bool:
    """Is it a word of a key that is written in the program, for each element?"""
    return is_broadcast_of_constant(x) and x.shape.element_type == "u32" and operation(x) == "add"
