"""What stands before a read across the grain of memory (`IsReadCoalescedHeuristic`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Instruction


def is_broadcast(instruction: Instruction) -> bool:
    """A broadcast or iota, or one seen through bitcasts and one-operand element-wise operations."""
    return chain_end(instruction).opcode in ("broadcast", "iota")


def chain_end(instruction: Instruction) -> Instruction:
    """Upwards through bitcasts and one-operand element-wise operations, to a broadcast or iota at most."""
    while instruction.opcode not in ("broadcast", "iota") and len(instruction.operands) == 1:
        if instruction.opcode != "bitcast" and not is_elementwise(instruction):
            break
        instruction = instruction.operands[0]
    return instruction
