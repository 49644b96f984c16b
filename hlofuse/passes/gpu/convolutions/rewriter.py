"""Convolutions as calls of cuDNN: targets, configurations, layouts, and the pass that makes them
(`xla/backends/gpu/transforms/conv_rewriter.cc`)."""

from functools import partial
from typing import NamedTuple

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.backend_config import gpu_config, gpu_config_text
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Instruction, InstructionSequence, Module, replace, set_attribute
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, Window, WindowDimension
from hlofuse.ir.opcodes import values
from hlofuse.ir.record import Json
from hlofuse.ir.shape import FLOATING_TYPES, INTEGER_TYPES, Shape
from hlofuse.passes.base import NotRepresentable, Pass, any_change, attempt, find_each, replaced
from hlofuse.passes.common.make import added, bare_element, bitcast, get_tuple_element
from hlofuse.passes.common.shapes import array, labels_of, permute, physical, unmodified_dimensions, window_of
from hlofuse.passes.layout.assignment import LayoutAssignment
from hlofuse.trace import Recorder

# Calls of cuDNN and configurations (`CudnnConvBackendConfig`, `xla/service/gpu/backend_configs.proto`).


FORWARD = "__cudnn$convForward"
BACKWARD_INPUT = "__cudnn$convBackwardInput"
BACKWARD_FILTER = "__cudnn$convBackwardFilter"
BIAS_ACTIVATION = "__cudnn$convBiasActivationForward"
NAMES = {
    FORWARD: "cudnn-conv",
    BACKWARD_INPUT: "cudnn-conv-bw-input",
    BACKWARD_FILTER: "cudnn-conv-bw-filter",
    BIAS_ACTIVATION: "cudnn-conv-bias-activation",
}
FORWARD_GRAPH = "__cudnn$convForwardGraph"
"""A convolution of 8-bit floats, with what cuDNN computes before and after it."""
TARGETS = frozenset({*NAMES, FORWARD_GRAPH})
DEFAULT: Json = {
    "activation_mode": "kNone",
    "conv_result_scale": 1,
    "side_input_scale": 0,
    "leakyrelu_alpha": 0,
}
config_of = partial(gpu_config, field="cudnn_conv_backend_config")
"""A copy of the call's configuration for the convolution."""


def configure(call: Instruction, config: Json) -> None:
    set_attribute(call, "backend_config", gpu_config_text("cudnn_conv_backend_config", config))


def call_like(call: Instruction, operands: InstructionSequence, target: str) -> Instruction:
    """`call` with other operands, in its computation: XLA adds a clone and then gives it its name."""
    attributes = call.attributes.without("control-predecessors").updated(custom_call_target=f'"{target}"')
    name = call.name if call.attributes.get("custom_call_target") == target else NAMES[target]
    call.parent.parent.instruction_names.skip((call.name,))
    new = Instruction(name, call.shape, "custom-call", operands, attributes)
    return call.parent.add_instruction(new)


# Layouts that cuDNN is called with: channels last, or after the batch (`HeuristicLayoutAssignment`).
def is_convolution_call(instruction: Instruction) -> bool:
    """`IsCustomCallToDnnConvolution`."""
    return custom_call_target(instruction) in TARGETS


def constrain_convolution(layouts: LayoutAssignment, call: Instruction, device: DeviceDescription) -> None:
    """`AddBackendConstraintsToDnnConvCustomCall`."""
    labels = call.attributes["dim_labels"]
    target = custom_call_target(call)
    last = _channels_last(call, device)
    source = _order(labels.lhs, "b", "f", last)
    weights = _order(labels.rhs, "o", "i", last)
    output = _order(labels.output, "b", "f", last)
    left, right, result = {
        BACKWARD_INPUT: (output, weights, source),
        BACKWARD_FILTER: (source, output, weights),
    }.get(target, (source, weights, output))
    layouts.set_array_operand_layout(call, 0, left)
    layouts.set_array_operand_layout(call, 1, right)
    layouts.set_buffer_layout(layouts.buffers.defined_by(call)[0,], result)
    if target == BIAS_ACTIVATION and call.operand_count == 4:
        layouts.set_array_operand_layout(call, 3, output)
    elif target == FORWARD_GRAPH:
        for number, operand in enumerate(call.operands):
            if number > 1 and operand.rank:
                layouts.set_array_operand_layout(call, number, output)


def convolution_shapes(call: Instruction) -> tuple[Shape, Shape, Shape]:
    """Input, filter and output of the convolution, whichever of them the call computes."""
    left, right = (o.shape for o in call.operands[:2])
    result = call.shape.tuple_shapes[0]
    target = custom_call_target(call)
    if target == BACKWARD_INPUT:
        return result, right, left
    return (left, result, right) if target == BACKWARD_FILTER else (left, right, result)


def _order(labels: str, first: str, channels: str, last: bool) -> tuple[int, ...]:
    spatial = sorted(filter(str.isdigit, labels))
    wanted = (first, *spatial, channels) if last else (first, channels, *spatial)
    return tuple(map(labels.index, wanted))[::-1]


def _channels_last(call: Instruction, device: DeviceDescription) -> bool:
    """NHWC for integers and FP8, from Hopper on for most, on older devices for 16 bits in two dimensions."""
    element = call.operand.element_type
    if element in INTEGER_TYPES or element.startswith("f8"):
        return True
    spatial = sum(c.isdigit() for c in call.attributes["dim_labels"].lhs)
    if device.compute_capability[0] >= 9:
        return element != "f64" and spatial <= 2
    half = element in FLOATING_TYPES and element in ("f16", "bf16")
    return half and device.compute_capability[0] >= 7 and call.shape.tuple_shapes[0].rank == 4


def normalized_call(call: Instruction) -> Instruction | None:
    """A tuple of bitcasts of the new call's results; None where nothing changes
    (`xla/service/gpu/conv_layout_normalization.cc`). As in XLA the operands' are made anyway."""
    if not is_convolution_call(call):
        return None
    operands = [bitcast(o, physical(o.shape)) for o in call.operands]
    shape = Shape.tuple_of([physical(s) if s.is_array else s for s in call.shape.tuple_shapes])
    labels = call.attributes["dim_labels"]
    source, weights, result = convolution_shapes(call)
    text = f"{_moved(labels.lhs, source)}_{_moved(labels.rhs, weights)}->{_moved(labels.output, result)}"
    if shape.key == call.shape.key and text == call.raw("dim_labels"):
        return None
    new = call.clone(operands, shape=shape)
    new.attributes = new.attributes.without("sharding", "frontend_attributes", "operand_layout_constraints")
    set_attribute(new, "dim_labels", text)
    call.parent.parent.instruction_names.skip(("custom-call",))
    call.parent.add_instruction(new)
    parts = [bitcast(bare_element(new, new, k), was) for k, was in enumerate(call.shape.tuple_shapes)]
    return added(call, "tuple", call.shape, parts)


def _moved(labels: str, shape: Shape) -> str:
    return "".join(labels[d] for d in reversed(shape.minor_to_major))


_TYPES = values("f16 bf16 f32 f64")


class ConvRewriter(Pass):
    """`conv-rewriter`, of convolutions of floats wider than a byte."""

    name = "conv-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = find_each(module, lambda x: x.opcode == "convolution")
        return any_change(map(attempt(_rewrite, recorder), found))


class _Call(NamedTuple):
    target: str
    operands: InstructionSequence
    window: Window
    labels: ConvolutionDimensionNumbers


def _rewrite(conv: Instruction) -> bool:
    types = {x.element_type for x in (conv, *conv.operands)}
    if not types <= _TYPES:
        raise NotRepresentable("a convolution of other element types")
    found = _backward_input(conv) or _backward_filter(conv) or _forward(conv)
    if found is None:
        return False
    source, groups = conv, "feature_group_count"
    if found.target == FORWARD and _batch_groups(conv) > 1:
        source = _in_groups_of_features(conv)
        found = found._replace(operands=source.operands)
    elif found.target == BACKWARD_FILTER:
        groups = "batch_group_count"
    attributes = {"window": str(found.window), "dim_labels": str(found.labels)}
    for name, source_name in (("feature_group_count", groups), ("operand_precision", "operand_precision")):
        if (value := source.raw(source_name)) is not None:
            attributes[name] = value
    call = added(
        conv,
        "custom-call",
        Shape.tuple_of([conv.shape, array("u8", [0])]),
        found.operands,
        like=conv,
        name=NAMES[found.target],
        raw_attributes=attributes,
        custom_call_target=f'"{found.target}"',
        backend_config=gpu_config_text("cudnn_conv_backend_config", DEFAULT),
    )
    return replaced(conv, get_tuple_element(conv, call, 0))


def _batch_groups(conv: Instruction) -> int:
    return int(conv.raw("batch_group_count") or 1)


def _in_groups_of_features(conv: Instruction) -> Instruction:
    """The new convolution; the old one stays (`ConvertBatchGroupedToFeatureGroupedConvolution`)."""
    groups, labels = _batch_groups(conv), labels_of(conv)
    lhs, rhs = conv.operands
    batch, feature = labels.input_batch_dimension, labels.input_feature_dimension
    kind, sizes = lhs.element_type, list(lhs.sizes)
    split = [*sizes[:batch], groups, sizes[batch] // groups, *sizes[batch + 1 :]]
    order = [d for d in range(len(split)) if d != batch]
    order.insert(feature, batch)
    lhs = added(conv, "reshape", array(kind, split), [lhs])
    merged = list(permute(split, order))
    lhs = added(conv, "transpose", array(kind, merged), [lhs], dimensions=order)
    del merged[feature]
    merged[feature] = sizes[feature] * groups
    lhs = added(conv, "reshape", array(kind, merged), [lhs])
    attributes = {**conv.attributes.raw_items, "feature_group_count": str(groups)}
    del attributes["batch_group_count"]
    return added(conv, "convolution", conv.shape, [lhs, rhs], raw_attributes=attributes)


def is_lowerable(conv: Instruction) -> bool:
    """`ConvIsLowerable`."""
    return any(found(conv) for found in (_forward, _backward_filter, _backward_input))


def _forward(conv: Instruction) -> _Call | None:
    """`CanImplementAsGpuForwardConv`."""
    window, labels = window_of(conv), labels_of(conv)
    spatial = len(labels.input_spatial_dimensions)
    reversals = {d.window_reversal for d in window}
    if spatial > 3 or any(o.element_count == 0 for o in conv.operands):
        return None
    if len(reversals) > 1 if spatial == 2 else True in reversals:
        return None
    return _Call(FORWARD, conv.operands, window, labels)


def _backward_input(conv: Instruction) -> _Call | None:
    """`MatchBackwardInput`: over gradients spread apart, with a filter turned round."""
    window, labels = window_of(conv), labels_of(conv)
    if conv.raw("feature_group_count", "1") != "1":
        return None
    kernel = conv.second
    is_reversed = kernel.opcode == "reverse" and sorted(kernel.dimensions) == sorted(
        labels.kernel_spatial_dimensions
    )
    if not is_reversed and _is_of_one_dimension(conv) and kernel.operand.opcode == "reverse":
        raise NotRepresentable("the gradient of a convolution in one dimension")
    is_trivial = kernel.is_constant or all(d.size == 1 for d in window)
    if not is_reversed and not (is_trivial and any(d.base_dilation != 1 for d in window)):
        return None
    if any(d.stride != 1 or d.window_dilation != 1 or d.window_reversal for d in window):
        return None
    dimensions = []
    for k, d in enumerate(window):
        low = d.size - 1 - d.padding_low
        full = conv.sizes[labels.output_spatial_dimensions[k]]
        count = conv.operand.sizes[labels.input_spatial_dimensions[k]]
        least = d.size + d.base_dilation * (count - 1) - full - low
        high = _even(low, least, d.base_dilation)
        if low < 0 or high < 0:
            return None
        dimensions.append(
            replace(d, stride=d.base_dilation, base_dilation=1, padding_low=low, padding_high=high)
        )
    if kernel.opcode == "reverse":
        kernel = kernel.operand
    elif kernel.is_constant:
        spatial = labels.kernel_spatial_dimensions
        kernel = added(conv, "reverse", kernel.shape, [kernel], dimensions=spatial)
    swapped = ConvolutionDimensionNumbers(
        labels.output, labels.rhs.translate(str.maketrans("io", "oi")), labels.lhs
    )
    return _Call(BACKWARD_INPUT, [conv.operand, kernel], Window(dimensions), swapped)


def _backward_filter(conv: Instruction) -> _Call | None:
    """`MatchBackwardFilter`: a kernel so large that it must be gradients."""
    window, labels = window_of(conv), labels_of(conv)
    if conv.raw("feature_group_count", "1") != "1" or _looks_forward(conv, labels):
        return None
    if any(d.stride != 1 or d.base_dilation != 1 or d.padding_low < 0 or d.window_reversal for d in window):
        return None
    small = sum(kernel <= result for kernel, result in _sizes(conv, labels))
    is_usual = not len(window) or small > 1 or (small == 1 and not _is_of_one_dimension(conv))
    if is_usual and all(d.window_dilation == 1 for d in window):
        return None
    dimensions = []
    for k, d in enumerate(window):
        size = conv.sizes[labels.output_spatial_dimensions[k]]
        count = conv.operand.sizes[labels.input_spatial_dimensions[k]]
        least = size + (d.size - 1) * d.window_dilation - count - d.padding_low
        high = _even(d.padding_low, least, d.window_dilation)
        if high < 0:
            return None
        dimensions.append(WindowDimension(size, d.window_dilation, d.padding_low, high))
    swapped = ConvolutionDimensionNumbers(
        labels.lhs.translate(str.maketrans("bf", "fb")),
        labels.output.translate(str.maketrans("bf", "io")),
        labels.rhs.translate(str.maketrans("io", "bf")),
    )
    return _Call(BACKWARD_FILTER, conv.operands, Window(dimensions), swapped)


def _even(low: int, least: int, stride: int) -> int:
    """The padding above nearest to that below, of those that give as many windows."""
    return min(max(low, least), least + stride - 1)


def _looks_forward(conv: Instruction, labels: ConvolutionDimensionNumbers) -> bool:
    """`LooksLikeForwardConvolution`."""
    lhs, rhs = (o.sizes for o in conv.operands)
    result = conv.sizes
    return (
        lhs[labels.input_batch_dimension] == result[labels.output_batch_dimension]
        and rhs[labels.kernel_output_feature_dimension] == result[labels.output_feature_dimension]
        and all(kernel <= size for kernel, size in _sizes(conv, labels))
    )


def _sizes(conv: Instruction, labels: ConvolutionDimensionNumbers) -> list[tuple[int, int]]:
    rhs, result = conv.second.sizes, conv.sizes
    spatial = zip(labels.kernel_spatial_dimensions, labels.output_spatial_dimensions, strict=True)
    return [(rhs[a], result[b]) for a, b in spatial]


def _is_of_one_dimension(conv: Instruction) -> bool:
    """`MaybeConv1dToConv2d`: the kernel was given a second spatial dimension."""
    kernel = conv.second
    if len(window_of(conv)) != 2 or not kernel.is_reshape:
        return False
    source, result = kernel.operand.shape, kernel.shape
    value = unmodified_dimensions(source, result)
    new = [d for d in range(result.rank) if d not in {b for _, b in value}]
    if len(value) != source.rank or len(new) != 1 or result.dimensions[new[0]] != 1:
        return False
    return new[0] in labels_of(conv).kernel_spatial_dimensions
