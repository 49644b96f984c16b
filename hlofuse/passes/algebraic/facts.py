"""What is known of a value: all elements equal to a constant, never negative, and the like."""

from __future__ import annotations

import math

from hlofuse.analysis.expensive import is_constant_effective_scalar
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES
from hlofuse.passes.common.literals import Value, scalar_of, values_of


def is_all(x: Instruction, value: Value) -> bool:
    """A constant, perhaps broadcast, of nothing but `value` (`IsAll`)."""
    while x.opcode == "broadcast":
        x = x.operands[0]
    if x.opcode != "constant" or not x.shape.is_array:
        return False
    if x.shape.element_type == "pred" and value not in (0, 1):
        return False
    values = values_of(x)
    if not values or any(v != value for v in values):
        return False
    # -0 is not 0: XLA compares the bits of the converted constant.
    return not (value == 0 and any(map(_is_negative_zero, values)))


def _is_negative_zero(value: Value) -> bool:
    if isinstance(value, complex):
        return _is_negative_zero(value.real) or _is_negative_zero(value.imag)
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def scalar_constant(x: Instruction) -> bool:
    """`ConstantScalar`."""
    return x.opcode == "constant" and x.shape.is_array and not x.shape.dimensions


def broadcast_constant(x: Instruction) -> Instruction | None:
    """The scalar constant that `x` is a broadcast of."""
    if x.opcode == "broadcast" and scalar_constant(x.operands[0]):
        return x.operands[0]
    return None


def broadcast_effective_constant(x: Instruction) -> Instruction | None:
    if x.opcode == "broadcast" and is_constant_effective_scalar(x.operands[0]):
        return x.operands[0]
    return None


def is_power_of_two(x: Instruction) -> bool:
    """±2^k, or a broadcast of it (`IsAllFpConstantPowerOf2`)."""
    constant = x if is_constant_effective_scalar(x) else broadcast_effective_constant(x)
    value = scalar_of(constant) if constant is not None else None
    if value is None or not math.isfinite(value):
        return False
    return abs(math.frexp(value)[0]) == 0.5


def is_integral(x: Instruction) -> bool:
    return x.shape.element_type in INTEGER_TYPES


def is_floating(x: Instruction) -> bool:
    return x.shape.element_type in FLOATING_TYPES


def is_complex(x: Instruction) -> bool:
    return x.shape.element_type in COMPLEX_TYPES


def is_signed_integer(x: Instruction) -> bool:
    return is_integral(x) and x.shape.element_type[0] == "s"


def is_non_negative(x: Instruction) -> bool:
    """`IsNonNegative`."""
    if any(is_complex(o) for o in x.operands):
        return False
    operands = x.operands
    match x.opcode:
        case "multiply":
            return operands[0] is operands[1] and not is_signed_integer(x)
        case "exponential":
            return True
        case "iota":
            if not is_signed_integer(x) or x.shape.bit_width >= 64:
                return True
            size = x.shape.dimensions[int(x.attributes["iota_dimension"])]
            return size <= 1 << (x.shape.bit_width - 1)
        case "abs":
            return not is_signed_integer(x) or is_non_negative(operands[0])
        case "broadcast":
            return is_non_negative(operands[0])
        case "constant":
            value = scalar_of(x)
            if value is None or math.isnan(value) or x.shape.element_type == "pred":
                return False
            return math.copysign(1, value) > 0
        case "minimum":
            return is_non_negative(operands[0]) and is_non_negative(operands[1])
        case "maximum":
            return is_non_negative(operands[0]) or is_non_negative(operands[1])
        case "power":
            return not is_signed_integer(x) and is_non_negative(operands[0])
        case "select":
            return is_non_negative(operands[1]) and is_non_negative(operands[2])
    return False  # where XLA proves `IsPositive`, it does so of library results only


def is_scalar_value(x: Instruction, value: Value) -> bool:
    """A constant of one element that equals `value`, -0 being 0."""
    return is_constant_effective_scalar(x) and scalar_of(x) == value
