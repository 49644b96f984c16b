"""Converts that float normalization put around what cannot compute in the program's precision."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import INTEGER_TYPES
from hlofuse.pipelines.names import is_of_program

_NARROW = frozenset(
    "bf16 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e3m4 f4e2m1fn f8e8m0fnu".split()
)
"""Types that `GpuCompiler::OptimizeHloPostLayoutAssignment` (`xla/service/gpu/gpu_compiler.cc`) widens."""
_WIDE = frozenset({"f16", "f32"})
"""What is computed in instead."""


def is_narrow(x: Instruction) -> bool:
    """Is it an array of such a type?"""
    return x.shape.is_array and x.shape.element_type in _NARROW


def was_two_converts(x: Instruction) -> bool:
    """Is it a young convert between types of which none is narrow? It was two, through a narrow one.

    SimplifyFPConversions (`xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc`) made one of them, with
    the users as they were.
    """
    return x.opcode == "convert" and not is_narrow(x) and not is_narrow(x.operands[0])


def is_inserted_convert(instruction: Instruction) -> bool:
    """Was it put in front of or behind what cannot compute in the program's precision?"""
    return instruction.opcode == "convert" and (is_narrowing(instruction) or is_widening(instruction))


def is_narrowing(instruction: Instruction) -> bool:
    """Was it put behind such an instruction?"""
    is_narrow_convert = instruction.opcode == "convert" and instruction.shape.element_type in _NARROW
    return is_narrow_convert and is_unnamed_convert(instruction)


def is_widening(instruction: Instruction) -> bool:
    """Was it put in front of such an instruction?

    A convert of the program from integers or predicates, which would make narrow numbers, has taken it in.
    """
    if instruction.opcode != "convert" or instruction.shape.element_type not in _WIDE:
        return False
    if not is_unnamed_convert(instruction):
        return False
    before = instruction.operands[0].shape.element_type
    return before in _NARROW or before in INTEGER_TYPES or before == "pred"


def before_layout(x: Instruction) -> Instruction:
    """What bitcasts and transposes of `x` are of."""
    while x.opcode in {"bitcast", "transpose"}:
        x = x.operands[0]
    return x


def reads_widened(product: Instruction) -> bool:
    """Was an operand of it widened for that?

    A narrow one that the program converted to, or that a loop is given, has no convert of its own left.
    """
    return any(is_widening(before_layout(o)) for o in product.operands[:2])


def readers_past_inserted(x: Instruction) -> list[Instruction]:
    """What reads `x`, or such a convert of it."""
    return [v for u in x.users for v in (u.users if is_inserted_convert(u) else [u])]


def is_unnamed_convert(x: Instruction) -> bool:
    """Is it a convert of no operation of the program?"""
    return x.opcode == "convert" and not x.op_name and not is_of_program(x)
