"""Which instructions float normalization made compute in single precision."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction

_NARROW = frozenset({"bf16"})


def is_inserted_convert(instruction: Instruction) -> bool:
    """Was it put in front of or behind what cannot compute in less than single precision?"""
    return instruction.opcode == "convert" and not instruction.op_name


def is_narrowing(instruction: Instruction) -> bool:
    """Was it put behind such an instruction?"""
    return is_inserted_convert(instruction) and instruction.shape.element_type in _NARROW


def widened(computation: Computation) -> frozenset[Instruction]:
    """Instructions that were narrow in the program and are f32 now.

    An element-wise operation was, if an operand was: their types are equal. A reduction says so by what
    it starts with.
    """
    found: set[Instruction] = set()
    for x in computation.post_order():
        if x.shape.is_tuple or x.shape.element_type != "f32" or x.opcode in {"convert", "parameter"}:
            continue
        if x.opcode == "reduce":
            narrow = is_inserted_convert(x.operands[1])
        else:
            narrow = is_elementwise(x) and any(o in found or is_inserted_convert(o) for o in x.operands)
        if narrow or any(is_narrowing(u) for u in x.users):
            found.add(x)
    return frozenset(found)
