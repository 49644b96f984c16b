"""Convolutions (`HandleConvolution`): padding taken in, operands exchanged where the filter is the larger
(`xla/hlo/transforms/simplifiers/conv_operand_swapper.cc`)."""

from dataclasses import replace

from hlofuse.ir.attributes.window import (
    ConvolutionDimensionNumbers,
    PaddingConfig,
    PaddingDimension,
    Window,
    WindowDimension,
)
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.facts import is_all
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import labels_of, window_of

_NONE = PaddingDimension(0, 0)


def handle_convolution(c: Context, conv: Instruction) -> bool:
    if any(o.shape.element_count == 0 for o in conv.operands):
        return c.replace(conv, make.scalar_like(conv, 0))
    return not (_with_padded_input(c, conv) or _with_dilated_filter(c, conv)) and _exchanged(c, conv)


def _rewindowed(
    c: Context, conv: Instruction, operands: list[Instruction], window: list[WindowDimension]
) -> bool:
    new = make.copy_of(conv, operands)
    new.attributes = new.attributes.updated(window=str(Window(tuple(window))))
    return c.replace(conv, new)


def _with_padded_input(c: Context, conv: Instruction) -> bool:
    """`FoldConvInputPad`."""
    pad, kernel = conv.operands
    if pad.opcode != "pad" or pad.operands[1].opcode != "constant" or not is_all(pad.operands[1], 0):
        return False
    labels, config = labels_of(conv), _padding(pad)
    if any(config[d] != _NONE for d in (labels.input_batch_dimension, labels.input_feature_dimension)):
        return False
    window = []
    for w, d in zip(window_of(conv), labels.input_spatial_dimensions, strict=True):
        p = config[d]
        if p.interior and (w.padding_low or w.padding_high or w.base_dilation != 1):
            return False
        if w.base_dilation != 1 and p != _NONE:
            return False
        low, high = w.padding_low + p.low, w.padding_high + p.high
        dilation = 1 + p.interior if p.interior else w.base_dilation
        window.append(replace(w, padding_low=low, padding_high=high, base_dilation=dilation))
    return _rewindowed(c, conv, [pad.operands[0], kernel], window)


def _with_dilated_filter(c: Context, conv: Instruction) -> bool:
    """`FoldConvFilterPad`."""
    source, pad = conv.operands
    if pad.opcode != "pad" or not is_all(pad.operands[1], 0):
        return False
    labels, config = labels_of(conv), _padding(pad)
    features = labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension
    if any(config[d] != _NONE for d in features):
        return False
    kernel = pad.operands[0]
    window = []
    for w, d in zip(window_of(conv), labels.kernel_spatial_dimensions, strict=True):
        p = config[d]
        if p.low or p.high or (p.interior and w.window_dilation > 1):
            return False
        if p.interior:
            w = replace(w, window_dilation=1 + p.interior, size=kernel.shape.dimensions[d])
        window.append(w)
    return _rewindowed(c, conv, [source, kernel], window)


def _padding(pad: Instruction) -> PaddingConfig:
    config = pad.attributes["padding"]
    assert isinstance(config, PaddingConfig)
    return config


def _exchanged(c: Context, conv: Instruction) -> bool:
    """`SwapConvolutionOperandsIfBeneficial`."""
    if not c.options.conv_operand_swap or c.options.layout_sensitive:
        return False
    groups = ("feature_group_count", "batch_group_count")
    if any(int(conv.attributes.raw(n, "1") or 1) > 1 for n in groups) or "sparsity" in conv.attributes:
        return False
    source, kernel = conv.operands
    labels = labels_of(conv)
    window, reversed_ = [], []
    unchanged_size = exchanged = 1
    for w, d, k in zip(
        window_of(conv), labels.input_spatial_dimensions, labels.kernel_spatial_dimensions, strict=True
    ):
        size = source.shape.dimensions[d]
        if _stays(w, size):
            window.append(w)
            continue
        unchanged_size *= w.size
        exchanged *= w.size if _covers_one(w, size) else size
        if not w.window_reversal:
            reversed_.append(k)
        window.append(_other(w, size))
    if unchanged_size <= exchanged:
        return False
    if reversed_:
        kernel = make.added(kernel, "reverse", kernel.shape, [kernel], dimensions=make.numbers(reversed_))
    attributes = {}
    if (precision := conv.attributes.raw("operand_precision")) is not None:
        attributes["operand_precision"] = "{" + ",".join(reversed(precision.strip("{}").split(","))) + "}"
    new = make.derived(
        conv,
        "convolution",
        conv.shape,
        [kernel, source],
        window=str(Window(tuple(window))),
        dim_labels=str(_exchanged_labels(labels)),
        **attributes,
    )
    if c.options.conv_is_lowerable is not None and not c.options.conv_is_lowerable(new):
        c.computation.remove_instruction(new)
        return False
    return c.replace(conv, new)


def _stays(w: WindowDimension, size: int) -> bool:
    """A dimension of groups, or one that is summed whole."""
    if w.window_reversal or w.padding_low or w.padding_high or w.window_dilation != 1:
        return False
    is_group = w.base_dilation == w.size and w.stride == w.size - 1
    return is_group or (w.size == size and w.base_dilation == 1 and w.stride == 1)


def _covers_one(w: WindowDimension, size: int) -> bool:
    return (
        size == 1
        and w.stride == 1
        and w.window_dilation == 1
        and w.padding_high == w.padding_low == w.size - 1
    )


def _other(w: WindowDimension, size: int) -> WindowDimension:
    """The window as the input is laid over the filter."""
    grown = (size - 1) * w.base_dilation - (w.size - 1) * w.window_dilation
    return WindowDimension(
        size,
        stride=w.stride,
        padding_low=grown + w.padding_low,
        padding_high=grown + w.padding_high,
        window_dilation=w.base_dilation,
        base_dilation=w.window_dilation,
        window_reversal=True,
    )


def _exchanged_labels(labels: ConvolutionDimensionNumbers) -> ConvolutionDimensionNumbers:
    return ConvolutionDimensionNumbers(
        labels.rhs.translate(str.maketrans("io", "fb")),
        labels.lhs.translate(str.maketrans("bf", "oi")),
        labels.output.translate(str.maketrans("bf", "fb")),
    )
