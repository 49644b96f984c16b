"""What the comparators of sorts compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.make import derived

_MOST_PACKED_BYTES = 2 << 30
_FLOATS = ("bf16", "f16", "f32", "f64")


@dataclass(frozen=True)
class Comparator:
    """Which operand a sort goes by and how, and the element types that CUB gets to see (`AnalyzeSortOp` in
    `xla/backends/gpu/transforms/sort_rewriter.cc`)."""

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


def _constant(source: Instruction, shape: Shape, text: str) -> Instruction:
    """A scalar in all places of `shape`."""
    one = derived(source, "constant", Shape(shape.element_type), [])
    one.payload = text
    return derived(source, "broadcast", shape, [one], dimensions="{}")


def radix_keys(operand: Instruction, key_type: str) -> Instruction:
    """Equal zeros and equal NaNs, then all bits of negative numbers turned and the sign of the others."""
    shape, make = operand.shape, partial(derived, operand)
    keys, preds = shape.with_element_type(key_type), shape.with_element_type("pred")
    zero = _constant(operand, shape, "0")
    is_zero = make("compare", preds, [operand, zero], direction="EQ")
    zeroed = make("select", shape, [is_zero, zero, operand])
    nan = _constant(operand, shape, "nan")
    is_nan = make("compare", preds, [operand, operand], direction="NE")
    canonical = make("select", shape, [is_nan, nan, zeroed])
    is_negative = make("compare", preds, [canonical, zero], direction="LT")
    bits = make("bitcast-convert", keys, [canonical])
    sign = _constant(operand, keys, str(1 << (shape.bit_width - 1)))
    of_others = make("xor", keys, [sign, bits])
    of_negatives = make("not", keys, [bits])
    return make("select", keys, [is_negative, of_negatives, of_others])


def packed_pairs(
    sort: Instruction, keys: Instruction, values: Instruction, by: Comparator
) -> Sequence[Instruction]:
    """The keys to sort by, and each key and value side by side in one number."""
    make = partial(derived, sort)
    keys_ = radix_keys(keys, by.key_type)
    packed = keys_.shape.with_element_type(str(by.value_type))
    raw_shape = values.shape.with_element_type(unsigned(values.shape.bit_width))
    raw = make("bitcast-convert", raw_shape, [values])
    if by.descending:
        raw = make("not", raw_shape, [raw])
    raw_keys = make("bitcast-convert", keys.shape.with_element_type(by.key_type), [keys])
    low = make("convert", packed, [raw])
    wide = make("convert", packed, [raw_keys])
    shift = _constant(sort, packed, str(values.shape.bit_width))
    high = make("shift-left", packed, [wide, shift])
    return keys_, make("or", packed, [high, low])


def unpacked_pairs(sort: Instruction, call: Instruction, by: Comparator) -> Instruction:
    """The tuple that the sort had, from the sorted pairs."""
    make = partial(derived, sort)
    packed = call.shape.tuple_shapes[1]
    key_shape, value_shape = sort.operands[by.key].shape, sort.operands[1 - by.key].shape
    pairs = make("get-tuple-element", packed, [call], index="1")
    shift = _constant(sort, packed, str(value_shape.bit_width))
    high = make("shift-right-logical", packed, [pairs, shift])
    raw_keys = make("convert", packed.with_element_type(by.key_type), [high])
    keys = make("bitcast-convert", key_shape, [raw_keys])
    raw_shape = packed.with_element_type(unsigned(value_shape.bit_width))
    raw = make("convert", raw_shape, [pairs])
    if by.descending:
        raw = make("not", raw_shape, [raw])
    values = make("bitcast-convert", value_shape, [raw])
    elements = [keys, values] if by.key == 0 else [values, keys]
    return make("tuple", Shape.tuple_of([e.shape for e in elements]), elements)
