"""Modules as XLA:CPU takes them, to run what a recipe's rewrite makes of a module and compare the values.

A rewrite works on the input of fusion: with layouts, fusions, and calls of libraries that no CPU has.
`portable` keeps the values: fusions are put in place, a bitcast becomes the transposes and the reshape that
it is, and what only a device or several of them can do has a stand-in, a function of the same operands.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from hlofuse.account import Observed
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir import print_module
from hlofuse.ir.attributes.attributes import NO_ATTRIBUTES
from hlofuse.ir.copy import copy_module
from hlofuse.ir.fusing import inline_calls
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import COMPLEX_TYPES, Shape
from hlofuse.judge.judge import Judge, Judgement
from hlofuse.library.loading import Loaded
from hlofuse.passes.common import make
from hlofuse.passes.dce import HloDCE
from hlofuse.reports.advice.catalogue import RECIPES
from hlofuse.reports.advice.recipe import Situation
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.explain.explain import explain
from hlofuse.trace import OnlySkipped

_FOREIGN = {
    "custom-call", "collective-permute", "all-to-all", "reduce-scatter", "partition-id", "replica-id",
    "rng-get-and-update-state", "rng-bit-generator", "rng", "infeed", "send", "recv", "ragged-dot",
}  # fmt: skip
_ELIDED = "{...}"
_JUDGED: dict[tuple[str, str], Judgement] = {}  # by the texts of both modules
_DEVICES = 4  # of a stand-in for a collective, all of which hold the same


REWRITES = {recipe.name: recipe for recipe in reversed(RECIPES) if recipe.rewrite is not None}


@cache
def archive(file: Path) -> dict[str, str]:
    """The modules of an archive by name."""
    with tarfile.open(file) as tar:
        modules = (m for m in tar if m.name.endswith(".hlo"))
        return {m.name: f.read().decode() for m in modules if (f := tar.extractfile(m)) is not None}


def situation_of(observed: Observed) -> Situation:
    """What the recipes are asked about."""
    facts = Facts(observed.replay, observed.costs)
    refused = [r for rule in explain(observed.replay, facts=facts).blocking_rules for r in rule.refusals]
    return Situation(facts, refused)


def judge_rewrites(judge: Judge, loaded: Loaded, names: Iterable[str]) -> Iterator[tuple[str, Judgement]]:
    """The verdict on each rewrite that a module admits, made at all of its places at once."""
    observed = loaded.observe()
    situation, before = situation_of(observed), observed.replay.input.module
    for name in names:
        recipe, after = REWRITES[name], copy_module(before)
        assert recipe.rewrite is not None
        found = recipe.find(situation)
        places = [p for p in ([after.find(n) for n in (f.at, *f.parts)] for f in found) if None not in p]
        if sum(recipe.rewrite(*p) for p in places):
            yield name, judged(judge, before, after)


def portable(module: Module) -> Module:
    """A copy for XLA:CPU with the same values, stand-ins aside."""
    module = copy_module(module)
    inline_calls(module, lambda i: i.opcode == "fusion")
    for computation in list(module.computations):
        for x in list(computation):
            if x.opcode == "bitcast":
                x.replace_all_uses_with(_as_moves(x))
            elif "lapack" in custom_call_target(x):
                pass
            elif x.opcode in _FOREIGN or (x.opcode == "constant" and x.payload == _ELIDED):
                x.replace_all_uses_with(_stand_in(x))
            elif x.opcode in ("all-gather", "all-reduce"):
                x.replace_all_uses_with(_collective(x))
    HloDCE().run(module, OnlySkipped())
    for x in module.instructions():
        if "operand_layout_constraints" not in x.attributes:  # LAPACK reads columns
            x.shape = _plain(x.shape)
    module.attributes = NO_ATTRIBUTES
    return module


def judged(judge: Judge, before: Module, after: Module) -> Judgement:
    """Whether `after`, changed by a rewrite, computes what `before` does; results that it dropped aside."""
    a, b = portable(before), portable(after)
    old, new = a.entry.root, b.entry.root
    if old.opcode == "tuple" and old.shape != new.shape:
        remaining = {o.name for o in new.operands} if new.opcode == "tuple" else {new.name}
        results = [o for o in old.operands if o.name in remaining]
        a.entry.root = make.tuple_of(old, results) if new.opcode == "tuple" else results[0]
        HloDCE().run(a, OnlySkipped())
    key = print_module(a), print_module(b)
    _JUDGED[key] = _JUDGED.get(key) or judge.judge(a, b, scales=(1.0,))
    return _JUDGED[key]


def _plain(shape: Shape) -> Shape:
    if shape.tuple_shapes:
        return Shape(shape.element_type, tuple_shapes=tuple(map(_plain, shape.tuple_shapes)))
    return Shape(shape.element_type, shape.dimensions, None)


def _as_moves(x: Instruction) -> Instruction:
    """A bitcast as a transpose to the order in memory, a reshape and a transpose from it."""
    source, kind = x.operands[0], x.shape.element_type
    if kind != source.shape.element_type:
        return make.add(x, "bitcast-convert", x.shape, [source])
    order = source.shape.minor_to_major[::-1]
    found = make.transpose(x, source, order, Shape(kind, tuple(source.shape.dimensions[d] for d in order)))
    order = x.shape.minor_to_major[::-1]
    found = make.reshape(x, Shape(kind, tuple(x.shape.dimensions[d] for d in order)), found)
    return make.transpose(x, found, [order.index(d) for d in range(len(order))], x.shape)


def _collective(x: Instruction) -> Instruction:
    """An all-gather or all-reduce over devices that hold the same."""
    if len(x.operands) > 1 or x.shape.is_tuple:
        return _stand_in(x)
    part = x.operands[0]
    if x.opcode == "all-gather":
        (along,) = x.dimensions
        return make.concatenate(x, [part] * (x.sizes[along] // part.sizes[along]), along)
    found = part
    for _ in range(_DEVICES - 1):
        found = make.binary(x, x.called_computations[0].root.opcode, found, part)
    return found


def _stand_in(x: Instruction) -> Instruction:
    """A function of all elements of the operands, another one for each element of the result."""
    arrays = [_flat(x, o) for o in x.operands if o.shape.is_array]
    whole = make.concatenate(x, [*arrays, make.iota(x, Shape("f32", (64,)), 0)], 0)
    zero = make.scalar(x, "f32", 0.0)
    total = make.reduce(x, whole, zero, [0], make.reducer(x, "stand_in", "add", "f32"))
    whole = make.binary(x, "add", whole, make.broadcast(x, whole.shape, total, ()))
    if x.shape.is_array:
        return _result(x, x.shape, whole, 1)
    leaves = [_result(x, s, whole, 1 + n) for n, s in enumerate(x.shape.tuple_shapes)]
    return make.tuple_of(x, leaves)


def _flat(at: Instruction, operand: Instruction) -> Instruction:
    kind = operand.shape.element_type
    if kind in COMPLEX_TYPES:
        operand = make.unary(at, "real", operand, operand.shape.with_element_type("f32"))
    return make.reshape(at, Shape("f32", (operand.shape.element_count,)), make.convert(at, operand, "f32"))


def _result(at: Instruction, shape: Shape, whole: Instruction, factor: int) -> Instruction:
    """`factor` times the first elements of `whole`, which is repeated as often as it takes."""
    count = shape.element_count
    times = -(-count // whole.shape.element_count)
    found = make.concatenate(at, [whole] * times, 0) if times > 1 else whole
    found = make.slice_of(at, found, [0], [count])
    scale = make.broadcast(at, found.shape, make.scalar(at, "f32", factor / 64), ())
    found = make.reshape(at, Shape("f32", shape.dimensions), make.binary(at, "multiply", found, scale))
    kind = shape.element_type
    if kind in COMPLEX_TYPES:
        return make.add(at, "complex", shape, [found, found])
    return make.convert(at, found, kind)
