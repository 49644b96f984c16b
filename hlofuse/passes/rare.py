"""Passes that find nothing to do in most modules."""

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import is_safely_removable, replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import Explained, attempt, rewrite_each, substituted, visit
from hlofuse.passes.dce import HloDCE
from hlofuse.rules.rewrites.entries import BATCH_NORM
from hlofuse.trace import Recorder

_GLOBAL_SHAPE = "xla.sdy.LocalToGlobalShape"


# Arrays without elements are constants (`xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.cc`).


class ZeroSizedHloElimination(Pass):
    name = "zero_sized_hlo_elimination"

    def run(self, module: Module, recorder: Recorder) -> bool:
        attempted = attempt(_eliminated, recorder)
        changed = False
        for computation in module.non_fusion_computations():
            if not any(0 in x.shape.dimensions for x in computation):
                continue
            for x in computation.post_order():
                changed |= x.shape.is_array and 0 in x.shape.dimensions and attempted(x)
        return changed


def _eliminated(x: Instruction) -> bool:
    if x.opcode == "constant" or x.shape.dynamic_dimensions:
        return False
    if has_side_effect(x) and x.attributes.get("custom_call_target") != _GLOBAL_SHAPE:
        return False
    is_parameter = x.opcode == "parameter"
    if is_parameter:
        if not x.users or x.control_predecessors or x.control_successors:
            return False
    elif not is_safely_removable(x):
        return False
    constant = make.constant(x, x.shape, [])
    if is_parameter:
        x.replace_all_uses_with(constant)
        return True
    return replace_instruction(x, constant, has_side_effect)


# Sizes of static dimensions are numbers (`xla/service/dynamic_padder.cc`); dynamic shapes are left alone.


class DynamicPadder(Pass):
    name = "dynamic_padder"

    def run(self, module: Module, recorder: Recorder) -> bool:
        dynamic = [i for i in module.instructions() if i.opcode in _DYNAMIC or _is_dynamic(i.shape)]
        for x in dynamic:
            recorder.skipped(x, "a dynamic shape")
        if dynamic:
            return False
        sizes = [i for c in module.computations for i in c.post_order() if i.opcode == "get-dimension-size"]
        for x in sizes:
            size = x.operands[0].shape.dimensions[x.dimensions[0]]
            constant = make.added(x, "constant", Shape("s32"), [], payload=str(size))
            x.replace_all_uses_with(constant)
        if sizes:
            HloDCE().run(module, recorder)
        return bool(sizes)


_DYNAMIC = ("set-dimension-size", "dynamic-reshape")


def _is_dynamic(shape: Shape) -> bool:
    return bool(shape.dynamic_dimensions) or any(map(_is_dynamic, shape.tuple_shapes))


# Maps of a single operation are that operation (`xla/service/map_inliner.cc`).


class MapInliner(Pass):
    name = "map-inline"

    def run(self, module: Module, recorder: Recorder) -> bool:
        handle = attempt(_inlined, recorder)
        changed = False
        for computation in list(module.computations):
            changed |= visit(computation, handle, frozenset({"map"}))
        return changed


def _inlined(x: Instruction) -> bool:
    root = x.called_computations[0].root
    if root.opcode == "fusion" or any(o.opcode != "parameter" for o in root.operands):
        return False
    if root.opcode == "parameter":
        new = x.operands[root.parameter_number]
    elif root.opcode == "constant":
        constant = computation_of(x).add_instruction(clone_of(root, []))
        new = make.added(x, "broadcast", x.shape, [constant], dimensions="{}")
    else:
        clone = clone_of(root, [x.operands[o.parameter_number] for o in root.operands])
        clone.shape = x.shape
        new = computation_of(x).add_instruction(clone)
    return replace_instruction(x, new, has_side_effect)


# Batch normalization in plain operations (`xla/service/batchnorm_expander.cc`).


_OPCODES = ("batch-norm-training", "batch-norm-inference", "batch-norm-grad")


class BatchNormExpander(Pass):
    name = "batchnorm_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, _OPCODES, _expand, recorder, Explained(BATCH_NORM))


def _expand(x: Instruction) -> bool:
    expansion = _Expansion(x)
    if x.opcode == "batch-norm-training":
        new = expansion.training()
    elif x.opcode == "batch-norm-inference":
        new = expansion.inference()
    else:
        new = expansion.gradient()
    return substituted(x, new)


class _Expansion:
    def __init__(self, x: Instruction) -> None:
        self.x = x
        self.data = x.operands[0].shape
        self.feature = x.operands[1].shape
        self.index = int(x.attributes["feature_index"])
        self.epsilon = float(x.attributes["epsilon"])
        self.others = [d for d in range(self.data.rank) if d != self.index]

    def _wide(self, a: Instruction) -> Instruction:
        """A value per feature for each element."""
        return make.broadcast(self.x, self.data.with_element_type(a.shape.element_type), a, [self.index])

    def _binary(self, opcode: str, a: Instruction, b: Instruction) -> Instruction:
        return make.binary(self.x, opcode, a, b)

    def _constant(self, value: float) -> Instruction:
        return make.scalar(self.x, self.data.element_type, value)

    def _count(self) -> Instruction:
        """Elements per feature."""
        integer = Shape("s32")
        count = make.scalar(self.x, "s32", 1)
        for d in self.others:
            size = make.add(
                self.x, "get-dimension-size", integer, [self.x.operands[0]], dimensions=make.numbers([d])
            )
            count = make.binary(self.x, "multiply", size, count)
        return make.add(self.x, "convert", Shape(self.data.element_type), [count])

    def _mean(self, count: Instruction, total: Instruction) -> Instruction:
        counts = make.broadcast(self.x, total.shape, count, ())
        return self._binary("divide", total, counts)

    def training(self) -> Instruction:
        x = self.x
        operand, scale, offset = x.operands
        zero = self._constant(0.0)
        epsilon = make.broadcast(x, self.data, self._constant(self.epsilon), ())
        count = self._count()
        scales, offsets = self._wide(scale), self._wide(offset)
        add = make.reducer(x, *_ADD, self.data.element_type, _SIDES)
        squares = self._binary("multiply", operand, operand)
        total = make.reduce(x, operand, zero, self.others, add)
        square_total = make.reduce(x, squares, zero, self.others, add)
        mean = self._mean(count, total)
        means = self._wide(mean)
        square_mean = self._mean(count, square_total)
        variance = self._binary("subtract", square_mean, self._binary("multiply", mean, mean))
        variances = self._wide(variance)
        deviation = make.unary(x, "rsqrt", self._binary("add", variances, epsilon))
        normalized = self._binary("multiply", self._binary("subtract", operand, means), deviation)
        shifted = self._binary("add", self._binary("multiply", normalized, scales), offsets)
        return make.added(x, "tuple", x.shape, [shifted, mean, variance])

    def inference(self) -> Instruction:
        x = self.x
        operand, scale, offset, mean, variance = x.operands
        epsilon = make.broadcast(x, self.feature, self._constant(self.epsilon), ())
        deviation = make.unary(x, "rsqrt", self._binary("add", variance, epsilon))
        true_scale = self._binary("multiply", scale, deviation)
        shift = self._binary("subtract", offset, self._binary("multiply", mean, true_scale))
        scaled = self._binary("multiply", operand, self._wide(true_scale))
        return self._binary("add", scaled, self._wide(shift))

    def gradient(self) -> Instruction:
        x = self.x
        operand, scale, mean, variance, output = x.operands
        count = self._count()
        zero = self._constant(0.0)
        small = self._constant(self.epsilon)
        epsilons = make.broadcast(x, self.data, small, ())
        epsilon = make.broadcast(x, self.feature, small, ())
        scales, variances, means = self._wide(scale), self._wide(variance), self._wide(mean)
        deviations = make.unary(x, "rsqrt", self._binary("add", variances, epsilons))
        deviation = make.unary(x, "rsqrt", self._binary("add", variance, epsilon))
        centered = self._binary("subtract", operand, means)
        products = self._binary("multiply", output, centered)
        add = make.reducer(x, *_ADD, self.data.element_type, _SIDES)
        product_total = make.reduce(x, products, zero, self.others, add)
        offset_gradient = make.reduce(x, output, zero, self.others, add)
        scale_gradient = self._binary("multiply", product_total, deviation)
        totals = self._wide(offset_gradient)
        product_totals = self._wide(product_total)
        along = self._binary("multiply", product_totals, centered)
        part = self._binary("divide", along, self._binary("add", variances, epsilons))
        factor = self._mean(count, self._binary("multiply", scales, deviations))
        counts = make.broadcast(x, self.data, count, ())
        scaled = self._binary("multiply", output, counts)
        rest = self._binary("subtract", self._binary("subtract", scaled, totals), part)
        gradient = self._binary("multiply", factor, rest)
        return make.added(x, "tuple", x.shape, [gradient, scale_gradient, offset_gradient])


_ADD = ("scalar_add_computation", "add")
_SIDES = ("scalar_lhs", "scalar_rhs")
