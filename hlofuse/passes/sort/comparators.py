"""What a sort goes by (`AnalyzeSortOp` in `xla/backends/gpu/transforms/sort_rewriter.cc`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.literals import scalar_of

_MOST_PACKED_BYTES = 2 << 30
_FLOATS = ("bf16", "f16", "f32", "f64")


@dataclass(frozen=True)
class Comparator:
    """Which operand a sort goes by and how, and the element types that CUB gets to see."""

    key: int
    descending: bool
    numpy_order: bool
    """Zeros are equal and every NaN comes last, not in the order of the bits."""
    key_type: str
    value_type: str | None


def unsigned(bits: int) -> str:
    return f"u{bits}"


def comparator_of(sort: Instruction) -> Comparator | None:
    """None where the sort compares otherwise than by one operand alone."""
    root = sort.called_computations[0].root
    direction = root.attributes.raw("direction")
    if root.opcode != "compare" or direction in ("EQ", "NE"):
        return None
    numpy_order = False
    sides = [_parameter(o) for o in root.operands]
    if None in sides:
        numpy_order = True
        sides = [_canonical_parameter(o) for o in root.operands]
    first, second = sides
    if first is None or second is None:
        return None
    low = min(first, second)
    if low % 2 or max(first, second) != low + 1:
        return None
    descending = (direction in ("GT", "GE")) != (low != first)
    types = _types(sort, low // 2, numpy_order)
    return Comparator(low // 2, descending, numpy_order, *types) if types is not None else None


def _types(sort: Instruction, key: int, numpy_order: bool) -> tuple[str, str | None] | None:
    """Of keys and values; in NumPy's order keys are made up, and what is sorted is in the values."""
    shape = sort.operands[key].shape
    pair = len(sort.operands) == 2
    value_type = sort.operands[1 - key].shape.element_type if pair else None
    if not numpy_order:
        return shape.element_type, value_type
    if shape.element_type not in _FLOATS:
        return None
    if not pair:
        return unsigned(shape.bit_width), shape.element_type
    if shape.element_type == "f64" or value_type not in ("s16", "s32"):
        return None
    packed = 32 if shape.bit_width + int(value_type[1:]) <= 32 else 64
    if shape.element_count * (shape.bit_width + packed) // 8 >= _MOST_PACKED_BYTES:
        return None
    return unsigned(shape.bit_width), unsigned(packed)


def _parameter(x: Instruction) -> int | None:
    return x.parameter_number if x.opcode == "parameter" else None


def _canonical_parameter(x: Instruction) -> int | None:
    """The parameter of which `x` is the value, every zero made 0 and every NaN the same."""
    if x.opcode != "select" or x.operands[2].opcode != "select":
        return None
    is_nan, nan, zeroed = x.operands
    is_zero, zero, value = zeroed.operands
    if not (_compares(is_nan, "NE", value) and is_nan.operands[1] is value):
        return None
    if not (_compares(is_zero, "EQ", value) and _is_zero(is_zero.operands[1]) and _is_zero(zero)):
        return None
    if nan.opcode != "constant" or (number := scalar_of(nan)) is None or number == number:
        return None
    return _parameter(value)


def _compares(x: Instruction, direction: str, first: Instruction) -> bool:
    return x.opcode == "compare" and x.attributes.raw("direction") == direction and x.operands[0] is first


def _is_zero(x: Instruction) -> bool:
    return scalar_of(x) == 0
