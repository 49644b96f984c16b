"""May an instruction be in a fusion at all? (`HloInstruction::IsFusible`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.graph import Instruction

_NEVER = frozenset({"domain", "parameter", "while", "conditional", "call"})
ALWAYS_FUSIBLE = ELEMENTWISE_OPCODES | {
    "fusion", "map", "reduce", "reduce-window",
    "bitcast", "broadcast", "concatenate", "constant", "dot", "dynamic-slice", "dynamic-update-slice",
    "gather", "get-tuple-element", "iota", "pad", "reshape", "slice", "transpose", "tuple",
}  # fmt: skip


def is_fusible(instruction: Instruction) -> bool:
    """False for parameters, control flow and whatever has a side effect."""
    opcode = instruction.opcode
    if opcode in _NEVER:
        return False
    if opcode in ALWAYS_FUSIBLE:
        return True
    if opcode == "rng":
        return len(instruction.users) <= 1
    return not has_side_effect(instruction)
