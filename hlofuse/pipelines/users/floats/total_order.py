"""Numbers compared in their total order, which are compared as integers.

ComparisonExpander (`xla/hlo/transforms/expanders/comparison_expander.cc`) flips the bits of what is
negative. It makes what is flipped first, then the comparison with zero, and what chooses between both last.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program


def in_order_of_expansion(bits: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of the `bits` of such a number, in the order in which they were made."""
    if len(users) != 3 or bits.opcode not in {"bitcast", "bitcast-convert"}:
        return users
    for chosen in users:
        if chosen.opcode == "select" and not is_of_program(chosen):
            is_negative, flipped, kept = chosen.operands
            made = [flipped, is_negative, chosen]
            if kept is bits and flipped.opcode == "xor" and set(made) == set(users):
                return made
    return users
