"""Counter-based generators and distributions as XLA's builder writes them (`xla/hlo/builder/lib/prng.cc`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array

Parts = list[Instruction]
"""Numbers in parts of 32 or 64 bits, the lowest first."""


class Builder:
    """Writes into a computation that has at least one instruction (`XlaBuilder`)."""

    def __init__(self, computation: Computation) -> None:
        self.at = computation.parameters[0]

    def constant(self, element_type: str, value: float) -> Instruction:
        return make.scalar(self.at, element_type, value)

    def binary(self, opcode: str, a: Instruction, b: Instruction | int) -> Instruction:
        """A scalar beside an array is broadcast."""
        if isinstance(b, int):
            b = self.constant(a.shape.element_type, b)
        if a.shape.rank < b.shape.rank:
            a = self.spread(a, b.shape.dimensions)
        elif b.shape.rank < a.shape.rank:
            b = self.spread(b, a.shape.dimensions)
        return make.binary(self.at, opcode, a, b)

    def scalar_like(self, x: Instruction, value: float) -> Instruction:
        one = self.constant(x.shape.element_type, value)
        return self.spread(one, x.shape.dimensions) if x.shape.rank else one

    def spread(self, scalar: Instruction, sizes: Sequence[int]) -> Instruction:
        return make.broadcast(self.at, array(scalar.shape.element_type, sizes), scalar, ())

    def convert(self, x: Instruction, element_type: str) -> Instruction:
        return make.convert(self.at, x, element_type)

    def bits(self, x: Instruction, element_type: str) -> Instruction:
        shape = x.shape.with_element_type(element_type)
        return make.add(self.at, "bitcast-convert", shape, [x])

    def reshape(self, x: Instruction, sizes: Sequence[int]) -> Instruction:
        return make.reshape(self.at, array(x.shape.element_type, sizes), x)

    def part(self, x: Instruction, start: int, limit: int) -> Instruction:
        return make.slice_of(self.at, x, [start], [limit])

    def concatenate(self, parts: Sequence[Instruction], dimension: int = 0) -> Instruction:
        return make.concatenate(self.at, list(parts), dimension)

    def unary(self, opcode: str, x: Instruction) -> Instruction:
        return make.unary(self.at, opcode, x)

    # Numbers in parts.

    def split(self, x: Instruction) -> Parts:
        """64 bits as two of 32 (`Uint64ToUint32s`)."""
        half = self.constant("u64", 32)
        return [
            self.convert(x, "u32"),
            self.convert(self.binary("shift-right-logical", x, half), "u32"),
        ]

    def joined(self, low: Instruction, high: Instruction) -> Instruction:
        """`Uint32sToUint64`"""
        low, high = self.convert(low, "u64"), self.convert(high, "u64")
        return self.binary("or", low, self.binary("shift-left", high, 32))

    def increased(self, number: Parts, by: Instruction, sizes: Sequence[int] = ()) -> Parts:
        """128 bits in two parts (`Uint128AddUint64`)."""
        low = self.binary("add", number[0], by)
        one = self.constant("u64", 1)
        before = self.spread(number[0], low.shape.dimensions) if low.shape.rank else number[0]
        carried = make.compare(self.at, "LT", low, before)
        more, high = self.binary("add", number[1], one), number[1]
        return [
            low,
            make.select(self.at, carried, self.spread(more, sizes), self.spread(high, sizes)),
        ]


@dataclass(frozen=True)
class Halves:
    """How an array is made of two (`SplitShapeIntoHalves`)."""

    sizes: tuple[int, ...]

    @property
    def dimension(self) -> int:
        """The first of even size, else the first of the largest."""
        even = [d for d, n in enumerate(self.sizes) if n % 2 == 0]
        return even[0] if even else self.sizes.index(max(self.sizes))

    def _parts(self, count: int) -> tuple[int, ...]:
        if not self.sizes:
            return (count,)
        d = self.dimension
        return (*self.sizes[:d], -(-self.sizes[d] // 2), count, *self.sizes[d + 1 :])

    @property
    def half(self) -> tuple[int, ...]:
        return self._parts(1)

    @property
    def both(self) -> tuple[int, ...]:
        return self._parts(2)

    def combined(self, b: Builder, parts: Sequence[Instruction]) -> Instruction:
        """`CombineShapePair`"""
        if not self.sizes:
            return b.reshape(parts[0], ())
        d = self.dimension
        size = self.sizes[d]
        result = b.concatenate(parts, d + 1)
        result = b.reshape(result, (*self.sizes[:d], size + size % 2, *self.sizes[d + 1 :]))
        if size % 2:
            result = make.slice_of(b.at, result, [0] * len(self.sizes), self.sizes)
        return result


def three_fry(
    b: Builder, key: Instruction, state: Instruction, shape: Shape
) -> tuple[Instruction, Instruction]:
    """Random bits and the new state (`ThreeFryBitGenerator`)."""
    if shape.bit_width == 64:
        inputs, state = _three_fry_inputs(b, state, shape.dimensions)
        return b.joined(*_three_fry_rounds(b, inputs, b.split(key))), state
    halves = Halves(shape.dimensions)
    inputs, state = _three_fry_inputs(b, state, halves.half)
    bits = halves.combined(b, _three_fry_rounds(b, inputs, b.split(key)))
    return b.convert(bits, f"u{shape.bit_width}"), state


def _three_fry_inputs(b: Builder, state: Instruction, sizes: Sequence[int]) -> tuple[Parts, Instruction]:
    number = b.spread(b.reshape(state, ()), sizes)
    stride = 1
    for d in reversed(range(len(sizes))):
        if sizes[d] >= 2:
            counter = make.iota(b.at, array("u64", sizes), d)
            number = b.binary("add", number, b.binary("multiply", counter, stride))
            stride *= sizes[d]
    following = b.binary("add", state, math.prod(sizes))
    return b.split(number), following


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _three_fry_rounds(b: Builder, x: Parts, key: Parts) -> Parts:
    key = [b.bits(part, "u32") for part in key]
    keys = [*key, b.constant("u32", _PARITY)]
    for k in (0, 1):
        keys[2] = b.binary("xor", keys[2], key[k])
    x = [b.binary("add", x[0], keys[0]), b.binary("add", x[1], keys[1])]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            low = b.binary("add", x[0], x[1])
            left = b.binary("shift-left", x[1], distance)
            rotated = b.binary("or", left, b.binary("shift-right-logical", x[1], 32 - distance))
            x = [low, b.binary("xor", low, rotated)]
        first = b.binary("add", x[0], keys[(group + 1) % 3])
        second = b.binary("add", x[1], keys[(group + 2) % 3])
        x = [first, b.binary("add", second, group + 1)]
    return x


def philox(b: Builder, key: Instruction, state: Instruction, shape: Shape) -> tuple[Instruction, Instruction]:
    """Random bits and the new state (`PhiloxBitGenerator`)."""
    count = math.prod(shape.dimensions)
    keys = b.split(key)
    wide = shape.bit_width == 64
    numbers = -(-count * (2 if wide else 1) // 4)
    halves = [b.reshape(b.part(state, k, k + 1), ()) for k in (0, 1)]
    parts = [*b.split(halves[0]), *b.split(halves[1])]
    counter = make.iota(b.at, array("u64", [numbers]), 0)
    start = [b.joined(*parts[:2]), b.joined(*parts[2:])]
    low, high = b.increased(start, counter, [numbers])
    inputs = [*b.split(low), *b.split(high)]
    following = b.increased(start, b.constant("u64", numbers))
    state = b.concatenate([b.reshape(x, [1]) for x in following])
    bits = _philox_rounds(b, inputs, keys)
    if wide:
        bits = [b.joined(*bits[:2]), b.joined(*bits[2:])]
    length = -(-count // len(bits))
    columns = b.concatenate([b.reshape(x, [length, 1]) for x in bits], 1)
    found = b.part(b.reshape(columns, [length * len(bits)]), 0, count)
    return b.convert(b.reshape(found, shape.dimensions), f"u{shape.bit_width}"), state


_WEYL = (0x9E3779B9, 0xBB67AE85)
_FACTORS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_ROUNDS = 10


def _philox_rounds(b: Builder, x: Parts, key: Parts) -> Parts:
    for _ in range(_PHILOX_ROUNDS):
        (high_0, low_0), (high_1, low_1) = (_product(b, x[2 * k], _FACTORS[k]) for k in (0, 1))
        x = [
            b.binary("xor", b.binary("xor", high_1, x[1]), key[0]),
            low_1,
            b.binary("xor", b.binary("xor", high_0, x[3]), key[1]),
            low_0,
        ]
        key = [b.binary("add", key[k], _WEYL[k]) for k in (0, 1)]
    return x


def _product(b: Builder, x: Instruction, factor: int) -> tuple[Instruction, Instruction]:
    product = b.binary("multiply", b.convert(x, "u64"), factor)
    low = b.convert(product, "u32")
    return b.convert(b.binary("shift-right-logical", product, 32), "u32"), low


_MANTISSA_BITS = {"f16": 10, "f32": 23, "f64": 52}


def uniform(
    b: Builder, bits: Instruction, least: Instruction, limit: Instruction, element_type: str
) -> Instruction:
    """`ConvertRandomBitsToUniformFloatingPoint`, `ConvertRandomBitsToUniformInt`"""
    if element_type in _MANTISSA_BITS:
        width = _MANTISSA_BITS[element_type]
        shift = b.scalar_like(bits, bits.shape.bit_width - width)
        values = b.convert(b.binary("shift-right-logical", bits, shift), element_type)
        values = b.binary("multiply", values, b.scalar_like(values, math.ldexp(1.0, -width)))
        spread = b.binary("subtract", limit, least)
        return b.binary("add", b.binary("multiply", values, spread), least)
    unsigned = bits.shape.element_type
    spread = b.binary("subtract", b.bits(limit, unsigned), b.bits(least, unsigned))
    distance = b.binary("remainder", bits, spread)
    half = b.binary("shift-right-logical", distance, 1)
    first = b.binary("add", least, b.bits(half, element_type))
    return b.binary("add", first, b.bits(b.binary("subtract", distance, half), element_type))


def normal(b: Builder, key: Instruction, state: Instruction, shape: Shape) -> Instruction:
    """`NormalFloatingPointDistribution`"""
    halves, kind = Halves(shape.dimensions), shape.element_type
    least, limit = b.constant(kind, 0.0), b.constant(kind, 1.0)
    bits, _ = philox(b, key, state, array(kind, halves.both))
    values = uniform(b, bits, least, limit, kind)
    starts = [0] * len(halves.both)
    second = list(starts)
    second[halves.dimension + 1 if halves.sizes else 0] = 1
    first_half = make.slice_of(b.at, values, starts, halves.half)
    second_half = make.slice_of(b.at, values, second, halves.both)
    radius = b.unary("log", u := b.binary("maximum", first_half, b.scalar_like(first_half, 1.0e-7)))
    angle = b.binary("multiply", b.scalar_like(second_half, 2.0 * math.pi), second_half)
    length = b.unary("sqrt", b.binary("multiply", b.scalar_like(u, -2.0), radius))
    parts = [b.binary("multiply", b.unary(f, angle), length) for f in ("sine", "cosine")]
    return halves.combined(b, parts)
