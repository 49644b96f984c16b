"""Random numbers by calls of their generators (`rng_expander.cc`, `rng_bit_generator_expander.cc` in
`xla/hlo/transforms/expanders/`)."""

import math
from collections.abc import Callable, Hashable, Sequence

from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.builder import Builder, Parts
from hlofuse.passes.common.rewriting import Explained, NotRepresentable, expand_each, substituted
from hlofuse.passes.common.shapes import array
from hlofuse.passes.random.generators import normal, philox, three_fry, uniform
from hlofuse.rules.rewrites import RANDOM_BITS, RANDOM_NUMBERS
from hlofuse.trace import Recorder

_FLOATS = ("f16", "f32", "f64")
_INTEGERS = ("s32", "u32", "s64", "u64")


def _found(module: Module, opcode: str) -> list[Instruction]:
    return [i for c in module.non_fusion_computations() for i in c.post_order() if i.opcode == opcode]


def _builder(at: Instruction, parameters: Sequence[tuple[str, Shape]]) -> tuple[Builder, Parts]:
    b = Builder(module_of(computation_of(at)), "rng")
    return b, [b.parameter(k, shape, name) for k, (name, shape) in enumerate(parameters)]


class _Generators:
    """One computation for each kind of numbers."""

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

        return expand_each(_found(module, "rng-bit-generator"), expand, recorder, Explained(RANDOM_BITS))


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
        found = _found(module, "rng")
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
        rng = _replaced(
            rng, make.added(rng, "rng", shape, operands, like=rng, distribution=distribution or "")
        )
    body = generators.of(rng, (distribution, shape.key, *(o.shape.key for o in operands)))
    seed = make.scalar(rng, "u64", (rng.id * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 32)
    units = math.prod(shape.dimensions) * (shape.bit_width // 32)
    state = make.added(rng, "rng-get-and-update-state", array("u64", [2]), [], delta=str(units))
    call = make.added(rng, "call", shape, [seed, state, *operands], called=[("to_apply", body)])
    _exchange(rng, call)


def _replaced(rng: Instruction, wide: Instruction) -> Instruction:
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
