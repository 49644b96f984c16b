"""Passes that write operations on the bits of floats in plain ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import highest, lowest
from hlofuse.passes.common.rewriting import Explained, rewrite_each, substituted
from hlofuse.passes.common.shapes import array
from hlofuse.rules.rewrites.entries import LOGISTIC
from hlofuse.trace import Recorder

# Total orders of floats compare integers (`xla/hlo/transforms/expanders/comparison_expander.cc`).


_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


@dataclass(frozen=True)
class ComparisonExpander(Pass):
    widened: Mapping[str, str] = field(default_factory=dict)
    """Types that are converted first, each to the type whose bits are compared."""
    name = "comparison-expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        def handle(x: Instruction) -> bool:
            if x.attributes.raw("type") != "TOTALORDER" or x.operands[0].shape.element_type not in _FLOATS:
                return False
            return substituted(x, self._expanded(x))

        return rewrite_each(module, ["compare"], handle, recorder)

    def _expanded(self, x: Instruction) -> Instruction:
        element_type = x.operands[0].shape.element_type
        wide = self.widened.get(element_type, element_type)
        return _of_integers(x, [make.convert(x, o, wide) for o in x.operands])


def _of_integers(x: Instruction, operands: Sequence[Instruction]) -> Instruction:
    shape = operands[0].shape.with_element_type(f"s{operands[0].shape.bit_width}")
    bounds = []
    for value in (0, lowest(shape.element_type), highest(shape.element_type)):
        assert value is not None
        scalar = make.scalar(x, shape.element_type, value)
        bounds.append(make.broadcast(x, shape, scalar, ()))
    zero, _, most = bounds
    sides = []
    for operand in operands:
        bits = make.add(x, "bitcast-convert", shape, [operand])
        flipped = make.binary(x, "xor", most, bits)
        negative = make.compare(x, "LT", bits, zero)
        sides.append(make.select(x, negative, flipped, bits))
    return make.add(x, "compare", x.shape, sides, direction=x.attributes.raw("direction"))


# The logistic function in plain operations (`xla/hlo/transforms/expanders/logistic_expander.cc`).


class LogisticExpander(Pass):
    """`logistic-expander`: 1 / (1 + exp(-x))."""

    name = "logistic-expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ["logistic"], _logistic, recorder, Explained(LOGISTIC))


def _logistic(x: Instruction) -> bool:
    operand = x.operands[0]
    one = make.scalar_like(operand, 1.0)
    power = make.added(x, "exponential", x.shape, [make.added(x, "negate", x.shape, [operand])])
    new = make.added(x, "divide", x.shape, [one, make.added(x, "add", x.shape, [one, power])])
    return substituted(x, new)


# Bitcasts to narrower and wider elements (`xla/hlo/transforms/expanders/bitcast_dtypes_expander.cc`).


class BitcastDtypesExpander(Pass):
    """`bitcast_dtypes_expander`; elements narrower than a byte are left alone."""

    name = "bitcast_dtypes_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ["bitcast-convert"], _expand, recorder)


def _expand(x: Instruction) -> bool:
    if not x.shape.is_array:
        return False
    widths = x.operands[0].shape.bit_width, x.shape.bit_width
    if widths[0] == widths[1] or min(widths) < 8 or max(widths) > 64:
        return False
    expand = _narrower if widths[0] > widths[1] else _wider
    new = _bits(x, expand(x, *widths), x.shape.element_type)
    return substituted(x, new)


def _bits(at: Instruction, operand: Instruction, element_type: str) -> Instruction:
    """`MakeBitcastConvertToHlo`"""
    if operand.shape.element_type == element_type:
        return operand
    return make.add(at, "bitcast-convert", operand.shape.with_element_type(element_type), [operand])


def _narrower(x: Instruction, width: int, new_width: int) -> Instruction:
    """Parts of each element, the lowest first (`Downcast`)."""
    source = x.operands[0]
    rank = source.shape.rank
    sizes = (*source.shape.dimensions, width // new_width)
    wide = make.broadcast(x, array(source.shape.element_type, sizes), source, range(rank))
    wide = _bits(x, wide, f"u{width}")
    counter = make.iota(x, wide.shape, rank)
    shift = make.binary(x, "multiply", make.scalar_like(wide, new_width), counter)
    shifted = make.binary(x, "shift-right-logical", wide, shift)
    masked = make.binary(x, "and", shifted, make.scalar_like(wide, (1 << new_width) - 1))
    return make.convert(x, masked, f"u{new_width}")


def _wider(x: Instruction, width: int, new_width: int) -> Instruction:
    """Elements of the last dimension put together (`Upcast`)."""
    source = x.operands[0]
    *outer, last = source.shape.dimensions
    if outer:
        sizes = [*outer[:-1], outer[-1] * last]
        source = make.reshape(x, array(source.shape.element_type, sizes), source)
    factor = new_width // width
    sizes = list(source.shape.dimensions)
    strides = [*(1 for _ in sizes[1:]), factor]
    result: Instruction | None = None
    for k in range(factor):
        starts = [*(0 for _ in sizes[1:]), k]
        limits = [*sizes[:-1], sizes[-1] - factor + k + 1]
        part = _bits(x, make.slice_of(x, source, starts, limits, strides), f"u{width}")
        part = make.convert(x, part, f"u{new_width}")
        if result is None:
            result = part
            continue
        part = make.binary(x, "shift-left", part, make.scalar_like(part, k * width))
        result = make.binary(x, "or", result, part)
    assert result is not None
    return result if outer else make.reshape(x, array(f"u{new_width}"), result)
