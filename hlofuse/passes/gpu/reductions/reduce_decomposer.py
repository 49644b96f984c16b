"""Reductions whose results lie in memory as what is left of their inputs
(`xla/hlo/transforms/expanders/reduce_decomposer.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import with_layout, without
from hlofuse.passes.gpu.reductions.reduces import (
    has_own_emitter,
    inputs_of,
    made_reduce,
    results_of,
)
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ReduceDecomposer(Pass):
    """`reduce-decomposer`; what has an emitter of its own may leave its result in another layout."""

    device: DeviceDescription
    name: ClassVar[str] = "reduce-decomposer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        equalized = visit_module(module, ["reduce"], _equalize, recorder)
        return visit_module(module, ["reduce"], self._handle, recorder) or equalized

    def _handle(self, reduce: Instruction) -> bool:
        return not has_own_emitter(reduce, self.device) and _decompose(reduce)


def _left(reduce: Instruction, inputs: list[Instruction]) -> tuple[Shape, ...]:
    """The shapes that the results have without a layout of their own (`InferReduceShape`)."""
    return tuple(without(i.shape, reduce.dimensions) for i in inputs)


def _equalize(reduce: Instruction) -> bool:
    """All inputs lie as the first one does (`VariadicReductionLayoutEqualizer`)."""
    inputs = inputs_of(reduce)
    order = inputs[0].shape.minor_to_major
    new = [
        i
        if i.shape.minor_to_major == order
        else make.copied(i, with_layout(i.shape.element_type, i.shape.dimensions, order))
        for i in inputs
    ]
    if new == inputs:
        return False
    shape = Shape.maybe_tuple_of(_left(reduce, new))
    return replaced(reduce, made_reduce(reduce, shape, new, reduce.dimensions))


def _decompose(reduce: Instruction) -> bool:
    inputs = inputs_of(reduce)
    wanted, expected = results_of(reduce), _left(reduce, inputs)
    if [s.key for s in wanted] == [s.key for s in expected]:
        return False
    new = made_reduce(reduce, Shape.maybe_tuple_of(expected), inputs, reduce.dimensions)
    if reduce.shape.is_tuple:
        parts = [make.copied(make.get_tuple_element(reduce, new, k), shape) for k, shape in enumerate(wanted)]
        return replaced(reduce, make.tuple_of(reduce, parts))
    (shape,) = wanted
    if len(reduce.users) == 1 and reduce.users[0].opcode == "convert":
        # The two stay side by side.
        convert = reduce.users[0]
        wide = make.convert(convert, new, convert.shape.element_type)
        return replaced(convert, make.copied(wide, shape.with_element_type(convert.shape.element_type)))
    return replaced(reduce, make.copied(new, shape))
