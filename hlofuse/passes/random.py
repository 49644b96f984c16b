"""Random numbers: the generators in plain operations, and the passes that write them."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Explained, NotRepresentable, Pass, expand_each, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.builder import Builder, Op, Parts
from hlofuse.passes.common.shapes import array
from hlofuse.rules.rewrites import RANDOM_BITS, RANDOM_NUMBERS
from hlofuse.trace import Recorder

# Numbers in parts of 32 or 64 bits, the lowest first.


def _of(x: Op, element_type: str) -> Op:
    return x if x.type == element_type else x.convert(element_type)


def _bits(x: Op, element_type: str) -> Op:
    return x.as_if("bitcast-convert", element_type)


def _split(x: Op) -> Parts:
    """64 bits as two of 32 (`Uint64ToUint32s`)."""
    half = x.b.constant("u64", 32)
    return [_of(x, "u32"), _of(x >> half, "u32")]


def _join(low: Op, high: Op) -> Op:
    """`Uint32sToUint64`"""
    low, high = _of(low, "u64"), _of(high, "u64")
    return low | (high << 32)


def _increase(number: Parts, by: Op, sizes: Sequence[int] = ()) -> Parts:
    """128 bits in two parts (`Uint128AddUint64`)."""
    low = number[0] + by
    one = by.b.constant("u64", 1)
    carried = low.compare("LT", number[0])
    more = number[1] + one
    return [low, carried.select(more.prepended(sizes), number[1].prepended(sizes))]


@dataclass(frozen=True)
class Halves:
    """The composition of an array from two halves (`SplitShapeIntoHalves`)."""

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

    def combined(self, parts: Parts) -> Op:
        """`CombineShapePair`"""
        if not self.sizes:
            return parts[0].reshape(())
        d = self.dimension
        size = self.sizes[d]
        result = parts[0].concatenated(parts[1:], d + 1)
        result = result.reshape((*self.sizes[:d], size + size % 2, *self.sizes[d + 1 :]))
        return result.slice([0] * len(self.sizes), self.sizes) if size % 2 else result


def three_fry(key: Op, state: Op, shape: Shape) -> tuple[Op, Op]:
    """Random bits and the new state (`ThreeFryBitGenerator`)."""
    if shape.bit_width == 64:
        inputs, state = _three_fry_inputs(state, shape.dimensions)
        return _join(*_three_fry_rounds(inputs, _split(key))), state
    halves = Halves(shape.dimensions)
    inputs, state = _three_fry_inputs(state, halves.half)
    return _of(halves.combined(_three_fry_rounds(inputs, _split(key))), f"u{shape.bit_width}"), state


def _three_fry_inputs(state: Op, sizes: Sequence[int]) -> tuple[Parts, Op]:
    number = state.reshape(()).prepended(sizes)
    stride = 1
    for d in reversed(range(len(sizes))):
        if sizes[d] >= 2:
            number += state.b.iota("u64", sizes, d) * stride
            stride *= sizes[d]
    following = state + math.prod(sizes)
    return _split(number), following


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _three_fry_rounds(x: Parts, key: Parts) -> Parts:
    key = [_bits(part, "u32") for part in key]
    keys = [*key, key[0].scalar(_PARITY) ^ key[0] ^ key[1]]
    x = [x[0] + keys[0], x[1] + keys[1]]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            low = x[0] + x[1]
            left = x[1] << distance
            x = [low, low ^ (left | (x[1] >> 32 - distance))]
        x = [x[0] + keys[(group + 1) % 3], x[1] + keys[(group + 2) % 3] + (group + 1)]
    return x


def philox(key: Op, state: Op, shape: Shape) -> tuple[Op, Op]:
    """Random bits and the new state (`PhiloxBitGenerator`)."""
    count, b = math.prod(shape.dimensions), key.b
    keys = _split(key)
    is_wide = shape.bit_width == 64
    numbers = -(-count * (2 if is_wide else 1) // 4)
    halves = [state.slice([k], [k + 1]).reshape(()) for k in (0, 1)]
    parts = [*_split(halves[0]), *_split(halves[1])]
    counter = b.iota("u64", [numbers])
    start = [_join(*parts[:2]), _join(*parts[2:])]
    low, high = _increase(start, counter, [numbers])
    following = _increase(start, b.constant("u64", numbers))
    state = following[0].reshape([1]).concatenated([following[1].reshape([1])], 0)
    bits = _philox_rounds([*_split(low), *_split(high)], keys)
    if is_wide:
        bits = [_join(*bits[:2]), _join(*bits[2:])]
    length = -(-count // len(bits))
    first, *others = [x.reshape([length, 1]) for x in bits]
    found = first.concatenated(others, 1).reshape([length * len(bits)]).slice([0], [count])
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


def _product(x: Op, factor: int) -> tuple[Op, Op]:
    product = _of(x, "u64") * factor
    low = _of(product, "u32")
    return _of(product >> 32, "u32"), low


_MANTISSA_BITS = {"f16": 10, "f32": 23, "f64": 52}


def uniform(bits: Op, least: Op, limit: Op, element_type: str) -> Op:
    """`ConvertRandomBitsToUniformFloatingPoint`, `ConvertRandomBitsToUniformInt`"""
    if element_type in _MANTISSA_BITS:
        width = _MANTISSA_BITS[element_type]
        values = _of(bits >> bits.x.shape.bit_width - width, element_type) * math.ldexp(1.0, -width)
        return values * (limit - least) + least
    unsigned = bits.type
    distance = bits.binary("remainder", _bits(limit, unsigned) - _bits(least, unsigned))
    half = distance >> 1
    return least + _bits(half, element_type) + _bits(distance - half, element_type)


def normal(key: Op, state: Op, shape: Shape) -> Op:
    """`NormalFloatingPointDistribution`"""
    halves, kind = Halves(shape.dimensions), shape.element_type
    least, limit = (key.b.constant(kind, bound) for bound in (0.0, 1.0))
    bits, _ = philox(key, state, array(kind, halves.both))
    values = uniform(bits, least, limit, kind)
    starts = [0] * len(halves.both)
    second = list(starts)
    second[halves.dimension + 1 if halves.sizes else 0] = 1
    first_half, second_half = values.slice(starts, halves.half), values.slice(second, halves.both)
    u = first_half.binary("maximum", 1.0e-7)
    radius = u.unary("log")
    angle = second_half.scalar(2.0 * math.pi) * second_half
    length = (u.scalar(-2.0) * radius).unary("sqrt")
    return halves.combined([angle.unary(f) * length for f in ("sine", "cosine")])


_FLOATS = ("f16", "f32", "f64")
_INTEGERS = ("s32", "u32", "s64", "u64")


def _find(module: Module, opcode: str) -> list[Instruction]:
    return [i for c in module.non_fusion_computations() for i in c.post_order() if i.opcode == opcode]


def _builder(at: Instruction, parameters: Sequence[tuple[str, Shape]]) -> tuple[Builder, Parts]:
    b = Builder(module_of(computation_of(at)), "rng")
    return b, [b.parameter(k, shape, name) for k, (name, shape) in enumerate(parameters)]


class _Generators:
    def __init__(self, create: Callable[[Instruction], Computation]) -> None:
        self._create = create
        self._created: dict[Hashable, Computation] = {}

    def of(self, x: Instruction, key: Hashable) -> Computation:
        if key not in self._created:
            self._created[key] = self._create(x)
        return self._created[key]


class RngBitGeneratorExpander(Pass):
    name = "rng-bit-generator-expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        generators = _Generators(_bit_generator)

        def expand(x: Instruction) -> None:
            if x.shape.tuple_shapes[1].element_type in ("pred", "c64", "c128"):
                raise NotRepresentable("random bits of this type")
            key = (x.operands[0].shape.key, x.shape.tuple_shapes[1].key, x.attributes.raw("algorithm"))
            body = generators.of(x, key)
            call = make.added(x, "call", x.shape, [x.operands[0]], called=[("to_apply", body)])
            substituted(x, call)

        return expand_each(_find(module, "rng-bit-generator"), expand, recorder, Explained(RANDOM_BITS))


def _bit_generator(x: Instruction) -> Computation:
    given, data = x.operands[0].shape, x.shape.tuple_shapes[1]
    b, (state,) = _builder(x, [("state", given)])
    key = state.slice([0], [1]).reshape(())
    if x.attributes.raw("algorithm") == "rng_three_fry":
        bits, following = three_fry(key, state.slice([1], [2]), data)
    else:
        is_short = given.dimensions[0] < 3
        counter = b.op("reverse", given, [state], dimensions=[0]) if is_short else state.slice([1], [3])
        bits, following = philox(key, counter, data)
        if is_short:
            following = following.slice([0], [1])
    return b.build(b.tuple_of([key.reshape([1]).concatenated([following], 0), bits]))


class RngExpander(Pass):
    """`rng-expander`; the seed of an operation is its id here, XLA's is that of its own graph."""

    name = "rng-expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        generators = _Generators(_distribution)
        found = _find(module, "rng")
        return expand_each(found, lambda x: _expand(x, generators), recorder, Explained(RANDOM_NUMBERS))


def _expand(rng: Instruction, generators: _Generators) -> None:
    distribution, kind = rng.attributes.raw("distribution"), rng.shape.element_type
    possible = _FLOATS if distribution == "rng_normal" else (*_FLOATS, *_INTEGERS)
    if kind not in (*possible, "bf16"):
        raise NotRepresentable("random numbers of this type")
    shape, operands = rng.shape, list(rng.operands)
    if rng.shape.bit_width < 32:
        shape = shape.with_element_type("f32")
        operands = [make.convert(rng, o, "f32") for o in operands]
        rng = _replace(
            rng, make.added(rng, "rng", shape, operands, like=rng, distribution=distribution or "")
        )
    body = generators.of(rng, (distribution, shape.key, *(o.shape.key for o in operands)))
    seed = make.scalar(rng, "u64", (rng.id * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 32)
    units = math.prod(shape.dimensions) * (shape.bit_width // 32)
    state = make.added(rng, "rng-get-and-update-state", array("u64", [2]), [], delta=str(units))
    call = make.added(rng, "call", shape, [seed, state, *operands], called=[("to_apply", body)])
    _exchange(rng, call)


def _replace(rng: Instruction, wide: Instruction) -> Instruction:
    _exchange(rng, make.convert(wide, wide, rng.shape.element_type))
    return wide


def _exchange(rng: Instruction, new: Instruction) -> None:
    for predecessor in list(rng.control_predecessors):
        predecessor.add_control_dependency_to(new)
    for successor in list(rng.control_successors):
        new.add_control_dependency_to(successor)
    rng.replace_all_uses_with(new)
    rng.drop_all_control_dependencies()
    computation_of(rng).remove_instruction(rng)


def _distribution(rng: Instruction) -> Computation:
    parameters = [
        ("op_seed", array("u64")),
        ("state", array("u64", [2])),
        ("a_or_mean", rng.operands[0].shape),
        ("b_or_sigma", rng.operands[1].shape),
    ]
    b, (seed, state, first, second) = _builder(rng, parameters)
    own = {"custom_call_target": '"GetRngSeed"', "frontend_attributes": '{_xla_cse_safe_zero_operand="true"}'}
    key = b.op("custom-call", array("u64"), raw=own) ^ seed
    if rng.attributes.raw("distribution") == "rng_normal":
        return b.build(first + second * normal(key, state, rng.shape))
    bits, _ = philox(key, state, rng.shape)
    return b.build(uniform(bits, first, second, rng.shape.element_type))


"""Random numbers: the generators in plain operations, and the passes that write them."""
