"""Batch normalization written in plain operations (`xla/service/batchnorm_expander.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import NotRepresentable, rewrite_each
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class BatchNormExpander(Pass):
    """`batchnorm_expander` of training, inference and gradient; arrays of dynamic sizes are left alone."""

    name: ClassVar[str] = "batchnorm_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        def handle(x: Instruction) -> bool:
            builder = _Builder(x)
            new = {
                "batch-norm-training": builder.training,
                "batch-norm-inference": builder.inference,
                "batch-norm-grad": builder.gradient,
            }[x.opcode]()
            return replace_instruction(x, new, has_side_effect, relay_control_dependencies=True)

        return rewrite_each(module, _OPCODES, handle, recorder)


_OPCODES = frozenset({"batch-norm-training", "batch-norm-inference", "batch-norm-grad"})


class _Builder:
    """Creates the operations in place of one batch normalization, in XLA's order."""

    def __init__(self, x: Instruction) -> None:
        self._x = x
        self._data = x.operands[0]
        self._whole = self._data.shape
        self._features = x.operands[1].shape
        self._type = self._whole.element_type
        if self._whole.dynamic_dimensions:
            raise NotRepresentable("batch normalization of an array whose size is dynamic")
        self._index = int(x.attributes.raw("feature_index") or 0)
        self._others = [d for d in range(self._whole.rank) if d != self._index]

    def training(self) -> Instruction:
        """The normalized data, mean and variance as a tuple."""
        data, scale, offset = self._x.operands
        zero, epsilon = self._scalar(0.0), self._fill(self._whole, self._epsilon())
        count = self._count()
        scale, offset = self._spread(scale), self._spread(offset)
        add = self._sum_computation()
        squares = self._binary("multiply", data, data)
        total, total_of_squares = self._sum(data, zero, add), self._sum(squares, zero, add)
        mean = self._mean(count, total)
        spread_mean = self._spread(mean)
        mean_of_squares = self._mean(count, total_of_squares)
        variance = self._binary("subtract", mean_of_squares, self._binary("multiply", mean, mean))
        deviation = self._rsqrt(self._binary("add", self._spread(variance), epsilon))
        normalized = self._binary("multiply", self._binary("subtract", data, spread_mean), deviation)
        result = self._binary("add", self._binary("multiply", normalized, scale), offset)
        return self._tuple(result, mean, variance)

    def inference(self) -> Instruction:
        """The normalized data."""
        data, scale, offset, mean, variance = self._x.operands
        epsilon = self._fill(self._features, self._epsilon())
        deviation = self._rsqrt(self._binary("add", variance, epsilon))
        scale = self._binary("multiply", scale, deviation)
        shift = self._binary("subtract", offset, self._binary("multiply", mean, scale))
        scaled = self._binary("multiply", data, self._spread(scale))
        return self._binary("add", scaled, self._spread(shift))

    def gradient(self) -> Instruction:
        """The gradients of data, scale and offset as a tuple."""
        data, scale, mean, variance, gradient = self._x.operands
        count = self._count()
        zero, epsilon = self._scalar(0.0), self._epsilon()
        whole_epsilon, epsilon = self._fill(self._whole, epsilon), self._fill(self._features, epsilon)
        scale, spread_variance, mean = self._spread(scale), self._spread(variance), self._spread(mean)
        whole_deviation = self._rsqrt(self._binary("add", spread_variance, whole_epsilon))
        deviation = self._rsqrt(self._binary("add", variance, epsilon))
        centered = self._binary("subtract", data, mean)
        product = self._binary("multiply", gradient, centered)
        add = self._sum_computation()
        total_of_products, total = self._sum(product, zero, add), self._sum(gradient, zero, add)
        of_scale = self._binary("multiply", total_of_products, deviation)
        spread_total, spread_products = self._spread(total), self._spread(total_of_products)
        numerator = self._binary("multiply", spread_products, centered)
        quotient = self._binary("divide", numerator, self._binary("add", spread_variance, whole_epsilon))
        factor = self._mean(count, self._binary("multiply", scale, whole_deviation))
        all_of_it = self._binary("multiply", gradient, self._fill(self._whole, count))
        rest = self._binary("subtract", self._binary("subtract", all_of_it, spread_total), quotient)
        return self._tuple(self._binary("multiply", factor, rest), of_scale, total)

    def _binary(self, opcode: str, a: Instruction, b: Instruction) -> Instruction:
        return make.binary(self._x, opcode, a, b)

    def _rsqrt(self, operand: Instruction) -> Instruction:
        return make.unary(self._x, "rsqrt", operand)

    def _scalar(self, value: float) -> Instruction:
        return make.scalar(self._x, self._type, value)

    def _epsilon(self) -> Instruction:
        return self._scalar(float(self._x.attributes.raw("epsilon") or 0.0))

    def _fill(self, shape: Shape, scalar: Instruction) -> Instruction:
        return make.broadcast(self._x, shape, scalar, ())

    def _spread(self, features: Instruction) -> Instruction:
        """One value for each feature in the shape of the data."""
        return make.broadcast(self._x, self._whole, features, [self._index])

    def _count(self) -> Instruction:
        """Elements of one feature: a number, as all sizes are known."""
        count = prod(self._whole.dimensions[d] for d in self._others)
        return make.convert(self._x, make.scalar(self._x, "s32", count), self._type)

    def _mean(self, count: Instruction, total: Instruction) -> Instruction:
        return self._binary("divide", total, self._fill(total.shape, count))

    def _sum(self, operand: Instruction, zero: Instruction, add: Computation) -> Instruction:
        place = make.numbers(self._others)
        return make.add(
            self._x, "reduce", self._features, [operand, zero], called=[("to_apply", add)], dimensions=place
        )

    def _tuple(self, *elements: Instruction) -> Instruction:
        return make.add(self._x, "tuple", Shape.tuple_of([e.shape for e in elements]), elements)

    def _sum_computation(self) -> Computation:
        body = Computation("scalar_add_computation")
        sides = [
            Instruction(f"scalar_{side}", array(self._type), "parameter", payload=str(number))
            for number, side in enumerate(("lhs", "rhs"))
        ]
        for parameter in sides:
            body.append_parsed(parameter)
        root = Instruction("add", array(self._type), "add", sides)
        body.append_parsed(root)
        body.root = root
        return module_of(computation_of(self._x)).add_computation(body)
