"""Convolutions as calls of cuDNN (`xla/backends/gpu/transforms/conv_rewriter.cc`)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, Window, WindowDimension
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass, any_change
from hlofuse.passes.common.make import added, numbers
from hlofuse.passes.common.reading import labels_of, window_of
from hlofuse.passes.common.rewriting import NotRepresentable, attempt, replaced
from hlofuse.passes.common.shapes import array, unmodified_dimensions
from hlofuse.passes.gpu.convolutions.calls import (
    BACKWARD_FILTER,
    BACKWARD_INPUT,
    DEFAULT,
    FORWARD,
    NAMES,
    config_text,
)
from hlofuse.trace import Recorder

_TYPES = frozenset({"f16", "bf16", "f32", "f64"})


class ConvRewriter(Pass):
    """`conv-rewriter`, of convolutions of floats wider than a byte."""

    name = "conv-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [x for c in module.non_fusion_computations() for x in c if x.opcode == "convolution"]
        return any_change(map(attempt(_rewrite, recorder), found))


class _Call(NamedTuple):
    target: str
    operands: Sequence[Instruction]
    window: Window
    labels: ConvolutionDimensionNumbers


def _rewrite(conv: Instruction) -> bool:
    types = {x.shape.element_type for x in (conv, *conv.operands)}
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
        if (value := source.attributes.raw(source_name)) is not None:
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
        backend_config=config_text(DEFAULT),
    )
    return replaced(conv, added(conv, "get-tuple-element", conv.shape, [call], like=conv, index="0"))


def _batch_groups(conv: Instruction) -> int:
    return int(conv.attributes.raw("batch_group_count") or 1)


def _in_groups_of_features(conv: Instruction) -> Instruction:
    """`ConvertBatchGroupedToFeatureGroupedConvolution`: the new one, which stays, read by nobody."""
    groups, labels = _batch_groups(conv), labels_of(conv)
    lhs, rhs = conv.operands
    batch, feature = labels.input_batch_dimension, labels.input_feature_dimension
    kind, sizes = lhs.shape.element_type, list(lhs.shape.dimensions)
    split = [*sizes[:batch], groups, sizes[batch] // groups, *sizes[batch + 1 :]]
    order = [d for d in range(len(split)) if d != batch]
    order.insert(feature, batch)
    lhs = added(conv, "reshape", array(kind, split), [lhs])
    transposed = array(kind, [split[d] for d in order])
    lhs = added(conv, "transpose", transposed, [lhs], dimensions=numbers(order))
    merged = [split[d] for d in order]
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
    if spatial > 3 or any(o.shape.element_count == 0 for o in conv.operands):
        return None
    if len(reversals) > 1 if spatial == 2 else True in reversals:
        return None
    return _Call(FORWARD, conv.operands, window, labels)


def _backward_input(conv: Instruction) -> _Call | None:
    """`MatchBackwardInput`: over gradients spread apart, with a filter turned round."""
    window, labels = window_of(conv), labels_of(conv)
    if conv.attributes.raw("feature_group_count", "1") != "1":
        return None
    kernel = conv.operands[1]
    is_reversed = kernel.opcode == "reverse" and sorted(kernel.dimensions) == sorted(
        labels.kernel_spatial_dimensions
    )
    if not is_reversed and _is_of_one_dimension(conv) and kernel.operands[0].opcode == "reverse":
        raise NotRepresentable("the gradient of a convolution in one dimension")
    is_trivial = kernel.opcode == "constant" or all(d.size == 1 for d in window)
    if not is_reversed and not (is_trivial and any(d.base_dilation != 1 for d in window)):
        return None
    if any(d.stride != 1 or d.window_dilation != 1 or d.window_reversal for d in window):
        return None
    dimensions = []
    for k, d in enumerate(window):
        low = d.size - 1 - d.padding_low
        full = conv.shape.dimensions[labels.output_spatial_dimensions[k]]
        count = conv.operands[0].shape.dimensions[labels.input_spatial_dimensions[k]]
        least = d.size + d.base_dilation * (count - 1) - full - low
        high = _even(low, least, d.base_dilation)
        if low < 0 or high < 0:
            return None
        dimensions.append(
            replace(d, stride=d.base_dilation, base_dilation=1, padding_low=low, padding_high=high)
        )
    if kernel.opcode == "reverse":
        kernel = kernel.operands[0]
    elif kernel.opcode == "constant":
        transposed = numbers(labels.kernel_spatial_dimensions)
        kernel = added(conv, "reverse", kernel.shape, [kernel], dimensions=transposed)
    swapped = ConvolutionDimensionNumbers(
        labels.output, labels.rhs.translate(str.maketrans("io", "oi")), labels.lhs
    )
    return _Call(BACKWARD_INPUT, [conv.operands[0], kernel], Window(tuple(dimensions)), swapped)


def _backward_filter(conv: Instruction) -> _Call | None:
    """`MatchBackwardFilter`: a kernel so large that it must be gradients."""
    window, labels = window_of(conv), labels_of(conv)
    if conv.attributes.raw("feature_group_count", "1") != "1" or _looks_forward(conv, labels):
        return None
    if any(d.stride != 1 or d.base_dilation != 1 or d.padding_low < 0 or d.window_reversal for d in window):
        return None
    small = sum(kernel <= result for kernel, result in _sizes(conv, labels))
    is_usual = not len(window) or small > 1 or (small == 1 and not _is_of_one_dimension(conv))
    if is_usual and all(d.window_dilation == 1 for d in window):
        return None
    dimensions = []
    for k, d in enumerate(window):
        size = conv.shape.dimensions[labels.output_spatial_dimensions[k]]
        count = conv.operands[0].shape.dimensions[labels.input_spatial_dimensions[k]]
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
    return _Call(BACKWARD_FILTER, conv.operands, Window(tuple(dimensions)), swapped)


def _even(low: int, least: int, stride: int) -> int:
    """The padding above nearest to that below, of those that give as many windows."""
    return min(max(low, least), least + stride - 1)


def _looks_forward(conv: Instruction, labels: ConvolutionDimensionNumbers) -> bool:
    """`LooksLikeForwardConvolution`."""
    lhs, rhs = (o.shape.dimensions for o in conv.operands)
    result = conv.shape.dimensions
    return (
        lhs[labels.input_batch_dimension] == result[labels.output_batch_dimension]
        and rhs[labels.kernel_output_feature_dimension] == result[labels.output_feature_dimension]
        and all(kernel <= size for kernel, size in _sizes(conv, labels))
    )


def _sizes(conv: Instruction, labels: ConvolutionDimensionNumbers) -> list[tuple[int, int]]:
    """Spatial sizes of kernel and result."""
    rhs, result = conv.operands[1].shape.dimensions, conv.shape.dimensions
    spatial = zip(labels.kernel_spatial_dimensions, labels.output_spatial_dimensions, strict=True)
    return [(rhs[a], result[b]) for a, b in spatial]


def _is_of_one_dimension(conv: Instruction) -> bool:
    """`MaybeConv1dToConv2d`: the kernel was given a second spatial dimension."""
    kernel = conv.operands[1]
    if len(window_of(conv)) != 2 or kernel.opcode != "reshape":
        return False
    source, result = kernel.operands[0].shape, kernel.shape
    value = unmodified_dimensions(source, result)
    new = [d for d in range(result.rank) if d not in {b for _, b in value}]
    if len(value) != source.rank or len(new) != 1 or result.dimensions[new[0]] != 1:
        return False
    return new[0] in labels_of(conv).kernel_spatial_dimensions
