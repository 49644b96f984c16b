"""Keys that are in NumPy's order by their bits alone (`xla/backends/gpu/transforms/sort_rewriter.cc`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.make import derived
from hlofuse.passes.sort.comparators import Comparator, unsigned


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
    made = radix_keys(keys, by.key_type)
    packed = made.shape.with_element_type(str(by.value_type))
    raw_shape = values.shape.with_element_type(unsigned(values.shape.bit_width))
    raw = make("bitcast-convert", raw_shape, [values])
    if by.descending:
        raw = make("not", raw_shape, [raw])
    raw_keys = make("bitcast-convert", keys.shape.with_element_type(by.key_type), [keys])
    low = make("convert", packed, [raw])
    wide = make("convert", packed, [raw_keys])
    shift = _constant(sort, packed, str(values.shape.bit_width))
    high = make("shift-left", packed, [wide, shift])
    return made, make("or", packed, [high, low])


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
