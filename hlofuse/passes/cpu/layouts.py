"""XLA:CPU's layout constraints (`xla/service/cpu/cpu_layout_assignment.cc`): row-major operands, mostly."""

from hlofuse.analysis.convolution import dimension_numbers, why_never_eigen
from hlofuse.analysis.cpu_predicates import EIGEN, dot_strategy
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Instruction, Module, Window, WindowDimension, replace_instruction
from hlofuse.passes.base import Pass, VisitPass, replaced
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.shapes import array, descending, permute
from hlofuse.passes.layout.assignment import ComputationConstraint, LayoutAssignment, row_major_everywhere
from hlofuse.passes.layout.rounds import assign_layouts
from hlofuse.trace import Recorder


class CpuLayoutAssignment(Pass):
    """`layout-assignment`; it always counts as a change where a module has none yet."""

    name = "layout-assignment"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return assign_layouts(module, _CpuLayouts, recorder)


class _CpuLayouts(LayoutAssignment):
    def add_backend_constraints(self, constraint: ComputationConstraint) -> None:
        for i in list(constraint.computation):
            if _is_row_major(i):
                self.set_instruction_layout(i, row_major_everywhere(i.shape))
                for number, operand in enumerate(i.operands):
                    self.set_operand_layout(i, number, row_major_everywhere(operand.shape))
                continue
            if i.opcode in ("all-gather", "reduce-scatter") and i.is_array:
                self.set_major(i)
                continue
            for number, operand in enumerate(i.operands):
                if (i, number) in constraint.operands or not operand.is_array:
                    continue
                if not self.buffers.forwards(i, number):
                    self.set_operand_layout(i, number, descending(operand.shape))


def _is_row_major(i: Instruction) -> bool:
    """`OperandsAndResultMustHaveRowMajorLayout`."""
    if i.opcode == "convolution":
        return why_never_eigen(i) is None
    if i.is_dot:
        return bool(DotDimensions.of(i).lhs_batch) or dot_strategy(i)[0] == EIGEN
    return custom_call_target(i) == "TopK"


class ConvolutionGroupConverter(VisitPass):
    """`convolution-group-converter`, of one picture a group: all features of each, and what belongs together
    chosen (`xla/hlo/transforms/simplifiers/convolution_group_converter.cc`: `HandleBatchGroupCount`)."""

    name = "convolution-group-converter"
    opcodes = ("convolution",)

    def handle(self, x: Instruction) -> bool:
        count, numbers = int(x.raw("batch_group_count") or 1), dimension_numbers(x)
        if count == 1 or numbers is None:
            return False
        source, kernel = x.operands
        pictures = source.sizes[numbers.input_batch_dimension]
        if not pictures == kernel.sizes[numbers.kernel_output_feature_dimension] == count:
            return False
        batch, feature = numbers.output_batch_dimension, numbers.output_feature_dimension
        sizes = list(x.sizes)
        sizes[batch] *= count
        ids = []
        for dimension in (batch, feature):
            each = [k for k in range(count) for _ in range(sizes[dimension] // count)]
            line = make.constant(x, array("s32", [sizes[dimension]]), each)
            ids.append(make.broadcast(x, array("s32", sizes), line, [dimension]))
        raw = x.attributes.given("window", "dim_labels", "operand_precision")
        whole = make.derived(x, "convolution", array(x.element_type, sizes), [source, kernel], **raw)
        same = make.compare(x, "EQ", *ids)
        chosen = make.select(x, same, whole, make.zeros(x, whole.shape))
        wide = x.element_type if x.shape.bit_width >= 32 else "f32"
        step = WindowDimension(count, count)
        window = Window(step if d == batch else WindowDimension(1) for d in range(len(sizes)))
        operands = [make.convert(x, chosen, wide), make.zero(x, wide)]
        summed = make.reducer(x, "add_computation", "add", wide)
        total = make.reduce_window(x, x.shape.with_element_type(wide), operands, summed, window)
        return replaced(x, make.convert(x, total, source.element_type))


class ConvCanonicalization(Pass):
    """In the entry only: convolutions with features last (`xla/service/cpu/conv_canonicalization.cc`)."""

    name = "convolution-canonicalization"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for x in module.entry.post_order():
            if x.opcode == "convolution" and why_never_eigen(x) is not None:
                _canonicalize(x)
                changed = True
        return changed


def _canonicalize(x: Instruction) -> None:
    numbers = dimension_numbers(x)
    assert numbers is not None
    source, kernel = x.operands
    spatial = "".join(str(k) for k in range(len(numbers.output_spatial_dimensions)))
    wanted = f"b{spatial}f", f"{spatial}io", f"b{spatial}f"
    given = numbers.lhs, numbers.rhs, numbers.output
    orders = [list(map(own.index, labels)) for own, labels in zip(given, wanted, strict=True)]
    operands = [
        make.transpose(o, o, order, array(o.element_type, permute(o.sizes, order)))
        for o, order in zip((source, kernel), orders, strict=False)
    ]
    raw = x.attributes.given("window", "feature_group_count", "batch_group_count", "operand_precision")
    result = array(x.element_type, permute(x.sizes, orders[2]))
    new = make.add(
        x,
        "convolution",
        result,
        operands,
        copied_attributes=raw,
        dim_labels="{}_{}->{}".format(*wanted),
    )
    replace_instruction(x, make.transpose(x, new, inverse(tuple(orders[2])), x.shape))
