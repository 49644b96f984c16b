"""Passes that find nothing to do in most modules."""

from collections.abc import Callable

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir import Instruction, Instructions, Module, Shape, values
from hlofuse.ir.removing import has_side_effect, is_safely_removable, replace_instruction
from hlofuse.rules.rewrites import BATCH_NORM
from hlofuse.trace import Recorder
from .base import Explained, Pass, RewritePass, any_change, attempt, substituted, visit
from .common import make
from .common.shapes import array, descending
from .dce import HloDCE

_GLOBAL_SHAPE = "xla.sdy.LocalToGlobalShape"


# Arrays without elements are constants (`xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.cc`).
class ZeroSizedHloElimination(Pass):
    name = "zero_sized_hlo_elimination"

    def run(self, module: Module, recorder: Recorder) -> bool:
        attempted = attempt(_eliminate, recorder)
        changed = False
        for computation in module.non_fusion_computations():
            if not any(0 in x.sizes for x in computation):
                continue
            for x in computation.post_order():
                changed |= x.is_array and 0 in x.sizes and attempted(x)
        return changed


def _eliminate(x: Instruction) -> bool:
    if x.is_constant or x.shape.dynamic_dimensions:
        return False
    if has_side_effect(x) and custom_call_target(x) != _GLOBAL_SHAPE:
        return False
    if x.is_parameter:
        if not x.users or x.has_control_dependencies:
            return False
    elif not is_safely_removable(x):
        return False
    constant = make.constant(x, x.shape, [])
    if x.is_parameter:
        x.replace_all_uses_with(constant)
        return True
    return replace_instruction(x, constant)


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
            size = x.operand.sizes[x.dimension]
            constant = make.added(x, "constant", Shape("s32"), [], payload=str(size))
            x.replace_all_uses_with(constant)
        if sizes:
            HloDCE().run(module, recorder)
        return bool(sizes)


_DYNAMIC = ("set-dimension-size", "dynamic-reshape")


def _is_dynamic(shape: Shape) -> bool:
    return bool(shape.dynamic_dimensions) or any(map(_is_dynamic, shape.tuple_shapes))


# Slices start at scalars (`xla/hlo/transforms/expanders/dynamic_index_splitter.cc`).
class DynamicIndexSplitter(RewritePass):
    name = "dynamic-index-splitter"
    opcodes = ("dynamic-slice", "dynamic-update-slice")

    def handle(self, x: Instruction) -> bool:
        first = 2 if x.opcode == "dynamic-update-slice" else 1
        rank = x.operand.rank
        if rank == 0:
            return replace_instruction(x, x.operands[first - 1])
        index = x.operands[first]
        if not index.sizes:
            return False
        one, of = array(index.element_type, [1]), array(index.element_type)
        starts = [
            make.added(x, "reshape", of, [make.added(x, "slice", one, [index], slice=f"{{[{d}:{d + 1}]}}")])
            for d in range(rank)
        ]
        raw = x.attributes.given("dynamic_slice_sizes")
        operands = [*x.operands[:first], *starts]
        new = make.added(x, x.opcode, x.shape, operands, raw_attributes=raw)
        return replace_instruction(x, new)


# Maps of a single operation are that operation (`xla/service/map_inliner.cc`).
class MapInliner(Pass):
    name = "map-inline"

    def run(self, module: Module, recorder: Recorder) -> bool:
        handle = attempt(_inline, recorder)
        return any_change(visit(c, handle, values("map")) for c in list(module.computations))


def _inline(x: Instruction) -> bool:
    root = x.to_apply.root
    if root.is_fusion or any(not o.is_parameter for o in root.operands):
        return False
    if root.is_parameter:
        new = x.operands[root.parameter_number]
    elif root.is_constant:
        constant = x.parent.add_instruction(root.clone([]))
        new = make.added(x, "broadcast", x.shape, [constant], dimensions="{}")
    else:
        clone = root.clone([x.operands[o.parameter_number] for o in root.operands], shape=x.shape)
        new = x.parent.add_instruction(clone)
    return replace_instruction(x, new)


# Batch normalization in plain operations (`xla/service/batchnorm_expander.cc`).
class _Norm:
    """Writes the operations of a batch normalization in front of it."""

    def __init__(self, x: Instruction) -> None:
        self.x, self.shape = x, x.operand.shape
        self.feature = int(x.attributes["feature_index"])
        self.others = [d for d in range(self.shape.rank) if d != self.feature]

    def wide(self, a: Instruction) -> Instruction:
        """A value for each feature, for each element."""
        return make.broadcast(self.x, descending(self.shape), a, [self.feature])

    def constant(self, value: float) -> Instruction:
        return make.scalar(self.x, self.shape.element_type, value)

    def epsilon(self) -> Instruction:
        return self.constant(float(self.x.attributes["epsilon"]))

    def filled(self, a: Instruction, like: Shape) -> Instruction:
        return make.broadcast(self.x, descending(like), a)

    def op(self, opcode: str, a: Instruction, b: Instruction) -> Instruction:
        """`b` may be a scalar."""
        b = self.filled(b, a.shape) if b.rank < a.rank else b
        return make.binary(self.x, opcode, a, b)

    def product(self, a: Instruction, b: Instruction) -> Instruction:
        return self.op("multiply", a, b)

    def deviation(self, variance: Instruction, epsilon: Instruction) -> Instruction:
        """Its reciprocal."""
        return make.unary(self.x, "rsqrt", self.op("add", variance, epsilon))

    def count(self) -> Instruction:
        count = make.scalar(self.x, "s32", 1)
        for d in self.others:
            data = self.x.operands[:1]
            size = make.add(self.x, "get-dimension-size", Shape("s32"), data, dimensions=[d])
            count = self.product(size, count)
        return make.convert(self.x, count, self.shape.element_type)

    def sums(self, zero: Instruction, *values: Instruction) -> Instructions:
        add = make.reducer(self.x, "scalar_add_computation", "add", self.shape.element_type, _SIDES)
        return [make.reduce(self.x, v, zero, self.others, add) for v in values]

    def training(
        self,
        data: Instruction,
        scale: Instruction,
        offset: Instruction,
    ) -> Instruction:
        zero = self.constant(0.0)
        epsilon = self.filled(self.epsilon(), self.shape)
        count = self.count()
        scales, offsets = self.wide(scale), self.wide(offset)
        total, square_total = self.sums(zero, data, self.product(data, data))
        mean = self.op("divide", total, count)
        means = self.wide(mean)
        mean_square = self.op("divide", square_total, count)
        variance = self.op("subtract", mean_square, self.product(mean, mean))
        deviation = self.deviation(self.wide(variance), epsilon)
        unit = self.product(self.op("subtract", data, means), deviation)
        shifted = self.op("add", self.product(unit, scales), offsets)
        return make.tuple_of(self.x, [shifted, mean, variance])

    def inference(
        self,
        data: Instruction,
        scale: Instruction,
        offset: Instruction,
        mean: Instruction,
        variance: Instruction,
    ) -> Instruction:
        epsilon = self.filled(self.epsilon(), scale.shape)
        whole = self.product(scale, self.deviation(variance, epsilon))
        shift = self.op("subtract", offset, self.product(mean, whole))
        return self.op("add", self.product(data, self.wide(whole)), self.wide(shift))

    def gradient(
        self,
        data: Instruction,
        scale: Instruction,
        mean: Instruction,
        variance: Instruction,
        output: Instruction,
    ) -> Instruction:
        count = self.count()
        zero, small = self.constant(0.0), self.epsilon()
        epsilons, epsilon = self.filled(small, self.shape), self.filled(small, scale.shape)
        scales, variances, means = self.wide(scale), self.wide(variance), self.wide(mean)
        deviations = self.deviation(variances, epsilons)
        deviation = self.deviation(variance, epsilon)
        centered = self.op("subtract", data, means)
        product_total, of_offset = self.sums(zero, self.product(output, centered), output)
        of_scale = self.product(product_total, deviation)
        totals, product_totals = self.wide(of_offset), self.wide(product_total)
        scaled = self.product(product_totals, centered)
        part = self.op("divide", scaled, self.op("add", variances, epsilons))
        factor = self.op("divide", self.product(scales, deviations), count)
        whole = self.product(output, self.filled(count, self.shape))
        rest = self.op("subtract", self.op("subtract", whole, totals), part)
        return make.tuple_of(self.x, [self.product(factor, rest), of_scale, of_offset])


_NORMS: dict[str, Callable[..., Instruction]] = {
    "batch-norm-training": _Norm.training,
    "batch-norm-inference": _Norm.inference,
    "batch-norm-grad": _Norm.gradient,
}
_SIDES = ("scalar_lhs", "scalar_rhs")


class BatchNormExpander(RewritePass):
    name = "batchnorm_expander"
    opcodes = tuple(_NORMS)
    explained = Explained(BATCH_NORM)

    def handle(self, x: Instruction) -> bool:
        return substituted(x, _NORMS[x.opcode](_Norm(x), *x.operands))
