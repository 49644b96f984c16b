"""Random bits become plain operations (`xla/hlo/transforms/expanders/rng_bit_generator_expander.cc`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from hlofuse.ir import Computation, Dims, Instruction, Ints, Module, Record, Shape
from hlofuse.rules.rewrites import RANDOM_BITS
from hlofuse.trace import Recorder
from .base import Explained, NotRepresentable, Pass, expand_each, find_each, substituted
from .common import make
from .common.shapes import array

Parts: TypeAlias = "list[_Op]"


class _Builder:
    """Writes a computation operation by operation (`xla/hlo/builder/xla_builder.cc`)."""

    def __init__(self, module: Module, state: Shape) -> None:
        self._module, self._computation = module, Computation("rng")
        self._parameter = self._computation.append_parameter("state", state)
        self.state = _Op(self, self._parameter)

    def op(
        self,
        opcode: str,
        shape: Shape,
        operands: Sequence[_Op] = (),
        **attributes: object,
    ) -> _Op:
        inputs = [o.x for o in operands]
        return _Op(self, make.add(self._parameter, opcode, shape, inputs, copied_attributes=attributes))

    def constant(self, element_type: str, value: int) -> _Op:
        return _Op(self, make.scalar(self._parameter, element_type, value))

    def iota(self, sizes: Ints, dimension: int = 0) -> _Op:
        return self.op("iota", array("u64", sizes), iota_dimension=dimension)

    def build(self, parts: Parts) -> Computation:
        """The computation of a tuple, in the post-order of XLA's copy (`XlaComputationToHloComputation`)."""
        computation = self._computation
        computation.root = self.op("tuple", Shape.tuple_of([p.x.shape for p in parts]), parts).x
        computation.reorder(computation.post_order())
        for i in computation:
            i.users.sort(key=lambda user: user.id)
        return self._module.add_computation(computation)


def _operator(opcode: str) -> Callable[[_Op, _Op | int], _Op]:
    return lambda x, other: x.binary(opcode, other)


class _Op:
    """A value (`XlaOp`). Numbers, and scalars with arrays, are broadcast."""

    def __init__(self, b: _Builder, x: Instruction) -> None:
        self.b = b
        self.x = x
        self.sizes, self.type = x.sizes, x.element_type

    def convert(self, element_type: str, opcode: str = "convert") -> _Op:
        return self.b.op(opcode, self.x.shape.with_element_type(element_type), [self])

    def binary(self, opcode: str, other: _Op | int, element_type: str = "", **raw: str) -> _Op:
        other = other if isinstance(other, _Op) else self.b.constant(self.type, other)
        sizes = self.sizes or other.sizes
        operands = [o if o.sizes == sizes else o.broadcast(sizes) for o in (self, other)]
        return self.b.op(opcode, array(element_type or self.type, sizes), operands, **raw)

    __add__, __mul__ = _operator("add"), _operator("multiply")
    __or__, __xor__ = _operator("or"), _operator("xor")
    __lshift__, __rshift__ = _operator("shift-left"), _operator("shift-right-logical")

    def select(self, yes: _Op, no: _Op) -> _Op:
        return self.b.op("select", yes.x.shape, [self, yes, no])

    def broadcast(self, sizes: Ints) -> _Op:
        """The scalar for each element."""
        return self.b.op("broadcast", array(self.type, sizes), [self], dimensions=())

    def reshape(self, sizes: Ints) -> _Op:
        return self.b.op("reshape", array(self.type, sizes), [self])

    def slice(self, starts: Ints, limits: Ints) -> _Op:
        return _Op(self.b, make.slice_of(self.x, self.x, starts, limits))

    def concatenated(self, others: Parts, dimension: int) -> _Op:
        parts = [self.x, *(o.x for o in others)]
        return _Op(self.b, make.concatenate(self.x, parts, dimension))


def _of(x: _Op, element_type: str) -> _Op:
    return x if x.type == element_type else x.convert(element_type)


def _split(x: _Op) -> Parts:
    """64 bits as two of 32 (`Uint64ToUint32s`)."""
    half = x.b.constant("u64", 32)
    return [_of(x, "u32"), _of(x >> half, "u32")]


def _join(low: _Op, high: _Op) -> _Op:
    """`Uint32sToUint64`"""
    low, high = _of(low, "u64"), _of(high, "u64")
    return low | (high << 32)


def _increase(number: Parts, by: _Op, sizes: Ints = ()) -> Parts:
    """128 bits in two parts (`Uint128AddUint64`)."""
    low = number[0] + by
    one = by.b.constant("u64", 1)
    carried = low.binary("compare", number[0], "pred", direction="LT")
    more = number[1] + one
    return [low, carried.select(more.broadcast(sizes), number[1].broadcast(sizes))]


class Halves(Record):
    """The composition of an array from two halves (`SplitShapeIntoHalves`)."""

    sizes: Dims

    @property
    def dimension(self) -> int:
        """The first of even size, else the first of the largest."""
        even = [d for d, n in enumerate(self.sizes) if n % 2 == 0]
        return even[0] if even else self.sizes.index(max(self.sizes))

    def _parts(self, count: int) -> Dims:
        if not self.sizes:
            return (count,)
        d = self.dimension
        half = -(-self.sizes[d] // 2)
        return (*self.sizes[:d], half, count, *self.sizes[d + 1 :])

    @property
    def half(self) -> Dims:
        return self._parts(1)

    @property
    def both(self) -> Dims:
        return self._parts(2)

    def combined(self, parts: Parts) -> _Op:
        """`CombineShapePair`"""
        if not self.sizes:
            return parts[0].reshape(())
        d = self.dimension
        size = self.sizes[d]
        result = parts[0].concatenated(parts[1:], d + 1)
        result = result.reshape((*self.sizes[:d], size + size % 2, *self.sizes[d + 1 :]))
        return result.slice([0] * len(self.sizes), self.sizes) if size % 2 else result


def three_fry(key: _Op, state: _Op, shape: Shape) -> tuple[_Op, _Op]:
    """Random bits and the new state (`ThreeFryBitGenerator`)."""
    if shape.bit_width == 64:
        inputs, state = _three_fry_inputs(state, shape.dimensions)
        return _join(*_three_fry_rounds(inputs, _split(key))), state
    halves = Halves(shape.dimensions)
    inputs, state = _three_fry_inputs(state, halves.half)
    return _of(halves.combined(_three_fry_rounds(inputs, _split(key))), f"u{shape.bit_width}"), state


def _three_fry_inputs(state: _Op, sizes: Ints) -> tuple[Parts, _Op]:
    number = state.reshape(()).broadcast(sizes)
    stride = 1
    for d in reversed(range(len(sizes))):
        if sizes[d] >= 2:
            number += state.b.iota(sizes, d) * stride
            stride *= sizes[d]
    following = state + math.prod(sizes)
    return _split(number), following


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _three_fry_rounds(x: Parts, key: Parts) -> Parts:
    key = [part.convert("u32", "bitcast-convert") for part in key]
    keys = [*key, key[0].b.constant("u32", _PARITY) ^ key[0] ^ key[1]]
    x = [x[0] + keys[0], x[1] + keys[1]]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            low = x[0] + x[1]
            left = x[1] << distance
            x = [low, low ^ (left | (x[1] >> 32 - distance))]
        first = keys[(group + 1) % 3]
        second = keys[(group + 2) % 3]
        x = [x[0] + first, x[1] + second + (group + 1)]
    return x


def philox(key: _Op, state: _Op, shape: Shape) -> tuple[_Op, _Op]:
    """Random bits and the new state (`PhiloxBitGenerator`)."""
    count, b = math.prod(shape.dimensions), key.b
    keys = _split(key)
    is_wide = shape.bit_width == 64
    numbers = -(-count * (2 if is_wide else 1) // 4)
    halves = [state.slice([k], [k + 1]).reshape(()) for k in (0, 1)]
    parts = [*_split(halves[0]), *_split(halves[1])]
    counter = b.iota([numbers])
    start = [_join(*parts[:2]), _join(*parts[2:])]
    low, high = _increase(start, counter, [numbers])
    following = _increase(start, b.constant("u64", numbers))
    state = following[0].reshape([1]).concatenated([following[1].reshape([1])], 0)
    bits = _philox_rounds([*_split(low), *_split(high)], keys)
    if is_wide:
        bits = [_join(*bits[:2]), _join(*bits[2:])]
    length = -(-count // len(bits))
    first, *others = [x.reshape([length, 1]) for x in bits]
    found = first.concatenated(others, 1).reshape([length * len(bits)])
    found = found.slice([0], [count])
    return _of(found.reshape(shape.dimensions), f"u{shape.bit_width}"), state


_WEYL = (0x9E3779B9, 0xBB67AE85)
_FACTORS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_ROUNDS = 10


def _philox_rounds(x: Parts, key: Parts) -> Parts:
    for _ in range(_PHILOX_ROUNDS):
        (high_0, low_0), (high_1, low_1) = (_product(x[2 * k], _FACTORS[k]) for k in (0, 1))
        x = [high_1 ^ x[1] ^ key[0], low_1, high_0 ^ x[3] ^ key[1], low_0]
        key = [key[k] + _WEYL[k] for k in (0, 1)]
    return x


def _product(x: _Op, factor: int) -> tuple[_Op, _Op]:
    product = _of(x, "u64") * factor
    low = _of(product, "u32")
    return _of(product >> 32, "u32"), low


class RngBitGeneratorExpander(Pass):
    name = "rng-bit-generator-expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        generators = {}
        found = find_each(module, lambda x: x.opcode == "rng-bit-generator", Computation.post_order)

        def expand(x: Instruction) -> None:
            if x.shape.tuple_shapes[1].element_type in ("pred", "c64", "c128"):
                raise NotRepresentable("random bits of this type")
            key = (x.operand.shape.key, x.shape.tuple_shapes[1].key, x.raw("algorithm"))
            if key not in generators:
                generators[key] = _bit_generator(x)
            substituted(x, make.added(x, "call", x.shape, [x.operand], called=generators[key]))

        return expand_each(found, expand, recorder, Explained(RANDOM_BITS))


def _bit_generator(x: Instruction) -> Computation:
    given, data = x.operand.shape, x.shape.tuple_shapes[1]
    b = _Builder(x.parent.parent, given)
    state = b.state
    key = state.slice([0], [1]).reshape(())
    if x.raw("algorithm") == "rng_three_fry":
        bits, following = three_fry(key, state.slice([1], [2]), data)
    else:
        is_short = given.dimensions[0] < 3
        counter = b.op("reverse", given, [state], dimensions=[0]) if is_short else state.slice([1], [3])
        bits, following = philox(key, counter, data)
        if is_short:
            following = following.slice([0], [1])
    return b.build([key.reshape([1]).concatenated([following], 0), bits])
