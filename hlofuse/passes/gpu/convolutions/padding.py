"""Passes that pad convolutions for cuDNN."""

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir import Instruction, Shape, Window, WindowDimension, replace, replace_instruction
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, PaddingConfig, PaddingDimension
from hlofuse.passes.base import ReleasePass, VisitPass
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array, labels_of, window_of, with_dimensions
from .rewriter import BACKWARD_FILTER, BACKWARD_INPUT, NAMES


class ConvPaddingLegalization(ReleasePass, VisitPass):
    """`conv-padding-legalization`, of convolutions that are calls by then: padding that cuDNN does not take,
    made pads and slices (`xla/backends/gpu/transforms/conv_padding_legalization.cc`)."""

    name = "conv-padding-legalization"
    opcodes = ("custom-call",)

    def handle(self, call: Instruction) -> bool:
        target = custom_call_target(call)
        if target == BACKWARD_FILTER:
            return _backward_filter(call, self.release.filters_padded_whole)
        return target in NAMES and (_backward_input if target == BACKWARD_INPUT else _forward)(call)


def _is_even(window: Window) -> bool:
    return all(d.padding_low == d.padding_high for d in window)


def _has_negative(window: Window) -> bool:
    return any(d.padding_low < 0 or d.padding_high < 0 for d in window)


def _forward(call: Instruction) -> bool:
    """`CanonicalizeForwardConvolution`."""
    window, labels = window_of(call), labels_of(call)
    if _is_even(window) and not _has_negative(window) and all(d.base_dilation == 1 for d in window):
        return False
    source, left = _padded_and_sliced(call.operand, window, labels)
    kernel = call.second
    if any(d.window_dilation != 1 for d in left):
        spread = {
            labels.kernel_spatial_dimensions[k]: PaddingDimension(0, 0, d.window_dilation - 1)
            for k, d in enumerate(left)
        }
        kernel = _padded(kernel, spread)
    sizes = [kernel.sizes[d] for d in labels.kernel_spatial_dimensions]
    dimensions = [replace(d, size=n, window_dilation=1) for d, n in zip(left, sizes, strict=True)]
    operands = [source, kernel, *call.operands[2:]]
    new = make.copy_of(call, operands, window=Window(dimensions))
    return replace_instruction(call, new)


def _padded_and_sliced(
    source: Instruction, window: Window, labels: ConvolutionDimensionNumbers
) -> tuple[Instruction, list[WindowDimension]]:
    """The input padded and sliced by a part of the window, and the rest (`MaybePaddedAndSlicedInput`)."""
    left = list(window)
    places = labels.input_spatial_dimensions
    if not _is_even(window) or any(d.base_dilation != 1 for d in window):
        config = {
            places[k]: PaddingDimension(max(d.padding_low, 0), max(d.padding_high, 0), d.base_dilation - 1)
            for k, d in enumerate(left)
        }
        left = [
            replace(
                d, padding_low=min(d.padding_low, 0), padding_high=min(d.padding_high, 0), base_dilation=1
            )
            for d in left
        ]
        source = _padded(source, config)
    if _has_negative(Window(left)):
        starts, limits = [0] * source.rank, list(source.sizes)
        for k, d in enumerate(left):
            starts[places[k]] -= min(d.padding_low, 0)
            limits[places[k]] += min(d.padding_high, 0)
        left = [
            replace(d, padding_low=max(d.padding_low, 0), padding_high=max(d.padding_high, 0)) for d in left
        ]
        source = make.slice_of(source, source, starts, limits)
    return source, left


def _padded(source: Instruction, config: dict[int, PaddingDimension]) -> Instruction:
    """`MakePadHlo` with zeros."""
    zero = make.zero(source, source.element_type)
    dimensions = [config.get(d, PaddingDimension(0, 0)) for d in range(source.rank)]
    sizes = [
        n + p.low + p.high + max(n - 1, 0) * p.interior for n, p in zip(source.sizes, dimensions, strict=True)
    ]
    shape = array(source.element_type, sizes)
    return make.pad(source, shape, source, zero, PaddingConfig(dimensions))


def _backward_filter(call: Instruction, whole: bool) -> bool:
    """Both sides are padded alike, or none where `whole` (`CanonicalizeBackwardFilterConvolution`)."""
    window, labels = window_of(call), labels_of(call)
    if _is_even(window) or _has_negative(window):
        return False
    config, dimensions = {}, []
    for k, d in enumerate(window):
        least = 0 if whole else min(d.padding_low, d.padding_high)
        place = labels.input_spatial_dimensions[k]
        config[place] = PaddingDimension(d.padding_low - least, d.padding_high - least)
        dimensions.append(replace(d, padding_low=least, padding_high=least))
    operands = [_padded(call.operand, config), call.second]
    new = make.copy_of(call, operands, window=Window(dimensions))
    return replace_instruction(call, new)


def _backward_input(call: Instruction) -> bool:
    """Less padding, and a piece of the larger result (`CanonicalizeBackwardInputConvolution`)."""
    window, labels = window_of(call), labels_of(call)
    if _is_even(window) or _has_negative(window):
        return False
    result, scratch = call.shape.tuple_shapes
    starts, limits = [0] * result.rank, list(result.dimensions)
    sizes, dimensions = list(result.dimensions), []
    for k, d in enumerate(window):
        place = labels.input_spatial_dimensions[k]
        least = min(d.padding_low, d.padding_high)
        starts[place] += d.padding_low - least
        limits[place] += d.padding_low - least
        sizes[place] += abs(d.padding_low - d.padding_high)
        dimensions.append(replace(d, padding_low=least, padding_high=least))
    larger = Shape.tuple_of([with_dimensions(result, sizes), scratch])
    new = make.copy_of(call, call.operands, larger, window=Window(dimensions))
    whole, rest = (make.get_tuple_element(call, new, k) for k in range(2))
    slice_ = make.slice_of(call, whole, starts, limits)
    return replace_instruction(call, make.tuple_of(call, [slice_, rest]))


_FEATURE_MULTIPLE = 8


def is_padded_for_tensor_cores(call: Instruction) -> bool:
    """True for a convolution of f16 or s8 whose features `cudnn_pad_for_convolutions` may pad."""
    if custom_call_target(call) not in NAMES or call.operand.element_type not in ("f16", "s8"):
        return False
    labels = labels_of(call)
    kernel = call.second.sizes
    features = (labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension)
    return any(kernel[d] % _FEATURE_MULTIPLE for d in features)
