"""Passes that pad convolutions for cuDNN."""

from dataclasses import replace

from hlofuse.analysis.custom_calls import custom_call_target, has_side_effect
from hlofuse.ir.attributes.window import (
    ConvolutionDimensionNumbers,
    PaddingConfig,
    PaddingDimension,
    Window,
    WindowDimension,
)
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction, set_attribute
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass, any_change
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array, labels_of, window_of, with_dimensions
from hlofuse.passes.gpu.convolutions.rewriter import BACKWARD_FILTER, BACKWARD_INPUT, FORWARD, NAMES
from hlofuse.trace import Recorder


class ConvPaddingLegalization(Pass):
    """`conv-padding-legalization`, of convolutions that are calls by then: padding that cuDNN does not take,
    made pads and slices (`xla/backends/gpu/transforms/conv_padding_legalization.cc`)."""

    name = "conv-padding-legalization"

    def run(self, module: Module, recorder: Recorder) -> bool:
        calls = [x for c in module.non_fusion_computations() for x in c if custom_call_target(x) in NAMES]
        others = {BACKWARD_INPUT: _backward_input, BACKWARD_FILTER: _backward_filter}
        return any_change(others.get(custom_call_target(call), _forward)(call) for call in calls)


def _is_even(window: Window) -> bool:
    return all(d.padding_low == d.padding_high for d in window)


def _has_negative(window: Window) -> bool:
    return any(d.padding_low < 0 or d.padding_high < 0 for d in window)


def _forward(call: Instruction) -> bool:
    """`CanonicalizeForwardConvolution`."""
    window, labels = window_of(call), labels_of(call)
    if _is_even(window) and not _has_negative(window) and all(d.base_dilation == 1 for d in window):
        return False
    source, left = _padded_and_sliced(call.operands[0], window, labels)
    kernel = call.operands[1]
    if any(d.window_dilation != 1 for d in left):
        spread = {
            labels.kernel_spatial_dimensions[k]: PaddingDimension(0, 0, d.window_dilation - 1)
            for k, d in enumerate(left)
        }
        kernel = _padded(kernel, spread)
    sizes = [kernel.shape.dimensions[d] for d in labels.kernel_spatial_dimensions]
    dimensions = [replace(d, size=n, window_dilation=1) for d, n in zip(left, sizes, strict=True)]
    new = make.copy_of(call, [source, kernel, *call.operands[2:]])
    set_attribute(new, "window", str(Window(tuple(dimensions))))
    return _replace(call, new)


def _padded_and_sliced(
    source: Instruction, window: Window, labels: ConvolutionDimensionNumbers
) -> tuple[Instruction, list[WindowDimension]]:
    """The input with what is taken out of the window applied, and what is left of that
    (`MaybePaddedAndSlicedInput`)."""
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
    if _has_negative(Window(tuple(left))):
        starts, limits = [0] * source.shape.rank, list(source.shape.dimensions)
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
    zero = make.zero(source, source.shape.element_type)
    dimensions = [config.get(d, PaddingDimension(0, 0)) for d in range(source.shape.rank)]
    sizes = [
        n + p.low + p.high + max(n - 1, 0) * p.interior
        for n, p in zip(source.shape.dimensions, dimensions, strict=True)
    ]
    shape = array(source.shape.element_type, sizes)
    return make.pad(source, shape, source, zero, PaddingConfig(tuple(dimensions)))


def _backward_filter(call: Instruction) -> bool:
    """The input is padded so that both sides are padded alike (`CanonicalizeBackwardFilterConvolution`)."""
    window, labels = window_of(call), labels_of(call)
    if _is_even(window) or _has_negative(window):
        return False
    config, dimensions = {}, []
    for k, d in enumerate(window):
        least = min(d.padding_low, d.padding_high)
        place = labels.input_spatial_dimensions[k]
        config[place] = PaddingDimension(d.padding_low - least, d.padding_high - least)
        dimensions.append(replace(d, padding_low=least, padding_high=least))
    new = make.copy_of(call, [_padded(call.operands[0], config), call.operands[1]])
    set_attribute(new, "window", str(Window(tuple(dimensions))))
    return _replace(call, new)


def _backward_input(call: Instruction) -> bool:
    """Less padding makes a larger result, of which a piece is taken
    (`CanonicalizeBackwardInputConvolution`)."""
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
    new = make.copy_of(call, call.operands, larger)
    set_attribute(new, "window", str(Window(tuple(dimensions))))
    whole, rest = (make.get_tuple_element(call, new, k) for k in range(2))
    slice_ = make.slice_of(call, whole, starts, limits)
    return _replace(call, make.tuple_of(call, [slice_, rest]))


def _replace(call: Instruction, new: Instruction) -> bool:
    return replace_instruction(call, new, has_side_effect)


_FEATURE_MULTIPLE = 8
_MAX_BYTES_RATIO = 1.35


class CudnnPadForConvolutions(Pass):
    """Features of convolutions padded for tensor cores
    (`xla/backends/gpu/transforms/cudnn_pad_for_convolutions.cc`). Those of integers are left as they are:
    which of them cuDNN takes is not known here."""

    name = "cudnn_pad_for_convolutions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        targets = (FORWARD, BACKWARD_INPUT, BACKWARD_FILTER)
        calls = [x for c in module.non_fusion_computations() for x in c if custom_call_target(x) in targets]
        return any_change(map(_pad_for_tensor_cores, calls))


def _pad_for_tensor_cores(call: Instruction) -> bool:
    old = [*(o.shape for o in call.operands), call.shape.tuple_shapes[0]]
    new = _padded_shapes(call, old)
    if new is None or new[:2] == old[:2]:
        return False
    _pad(call, new[:2], new[2])
    return True


def _padded_shapes(call: Instruction, old: list[Shape]) -> list[Shape] | None:
    """The padded shapes of both operands and the result (`TryResolvePaddedShapesForTensorCore`)."""
    groups = (call.attributes.raw(name) for name in ("feature_group_count", "batch_group_count"))
    if old[2].element_type != "f16" or any(int(n or 1) > 1 for n in groups):
        return None
    # where the input, the kernel and the output are among the operands and the result
    at = {FORWARD: (0, 1, 2), BACKWARD_INPUT: (2, 1, 0), BACKWARD_FILTER: (0, 2, 1)}
    source, kernel, out = at[custom_call_target(call) or ""]
    labels = labels_of(call)
    sizes = [list(shape.dimensions) for shape in old]
    into, result = labels.input_feature_dimension, labels.output_feature_dimension
    if sizes[source][into] == 3 and sizes[out][result] in (32, 64):
        sizes[source][into] = sizes[kernel][labels.kernel_input_feature_dimension] = 4
        return [with_dimensions(shape, n) for shape, n in zip(old, sizes, strict=True)]
    for which, dimension in (
        (source, into),
        (kernel, labels.kernel_input_feature_dimension),
        (kernel, labels.kernel_output_feature_dimension),
        (out, result),
    ):
        sizes[which][dimension] = -(-sizes[which][dimension] // _FEATURE_MULTIPLE) * _FEATURE_MULTIPLE
    new = [with_dimensions(shape, n) for shape, n in zip(old, sizes, strict=True)]
    small = all(n.byte_size <= o.byte_size * _MAX_BYTES_RATIO for n, o in zip(new, old, strict=True))
    return new if small else None


def _pad(call: Instruction, operands: list[Shape], result: Shape) -> None:
    """`PadConv`: the result is cut back."""
    padded = [_padded_features(o, shape) for o, shape in zip(call.operands, operands, strict=True)]
    old, scratch = call.shape.tuple_shapes
    new = make.copy_of(call, padded, Shape.tuple_of([result, scratch]))
    if result != old:
        whole = make.get_tuple_element(call, new, 0)
        nothing = make.constant(call, array("u8", [0]), [])
        slice_ = make.slice_of(call, whole, [0] * old.rank, old.dimensions)
        new = make.tuple_of(call, [slice_, nothing])
    replace_instruction(call, new, has_side_effect)


def _padded_features(operand: Instruction, shape: Shape) -> Instruction:
    """`PadInstruction`, at the end of each dimension."""
    if operand.shape == shape:
        return operand
    missing = [n - o for n, o in zip(shape.dimensions, operand.shape.dimensions, strict=True)]
    zero = make.zero(operand, shape.element_type)
    config = PaddingConfig(tuple(PaddingDimension(0, n) for n in missing))
    return make.pad(operand, shape, operand, zero, config)
