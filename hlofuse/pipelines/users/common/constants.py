"""Values that depend on nothing."""

from __future__ import annotations

from collections.abc import Hashable
from struct import pack, unpack

from hlofuse.analysis.constants import is_broadcast_of_constant, is_constant
from hlofuse.ir.instruction import Instruction


def is_made_of_nothing(x: Instruction) -> bool:
    """Is it, or every element of it, a constant or a number of its own place?"""
    return x.opcode == "iota" or is_constant(x)


def literal_of(broadcast: Instruction) -> Hashable:
    """The constant that is broadcast: the same for equal ones."""
    constant = broadcast.operands[0]
    return constant.shape.key, constant.payload


def number_of(broadcast: Instruction) -> float | None:
    """The f32 number that is broadcast; None where it is none, or 0."""
    if not is_broadcast_of_constant(broadcast) or broadcast.shape.element_type != "f32":
        return None
    value = broadcast.operands[0].literal.scalar
    return None if value is None else in_single_precision(float(value))


def in_single_precision(value: float) -> float | None:
    """`value` rounded; None for what is too large, and for 0."""
    number: float = unpack("f", pack("f", value))[0] if abs(value) < 2.0**127 else 0.0
    return number or None
