"""What random bits are made of: words of a key, and rotations."""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame

_TURNS = frozenset({"shift-left", "shift-right-logical"})


def is_turn(x: Instruction) -> bool:
    """Is it half of a rotation?"""
    return x.opcode in _TURNS


def is_word_of_key(x: Instruction) -> bool:
    """Is it a word of a key that is written in the program, for each element?"""
    return is_broadcast_of_constant(x) and x.shape.element_type == "u32" and operation(x) == "add"


def joins_words_of_computed_key(x: Instruction) -> bool:
    """Does Threefry join both words of a key that another call of it computed?

    The framework had stacked the words of such keys and unstacked them again, which reshapes each.
    """
    if x.opcode != "xor" or operation(x) != "xor" or len(set(x.operands)) < 2:
        return False
    places = {stack_frame(o) for o in x.operands}
    if len(places) > 1 or stack_frame(x) in places:
        return False
    return all(o.opcode == "add" and o.shape.rank and operation(o) == "add" for o in x.operands)
