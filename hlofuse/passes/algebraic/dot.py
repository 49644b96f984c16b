"""Products, and convolutions (`HandleConvolution`): padding taken in, operands exchanged where the filter is
the larger (`xla/hlo/transforms/simplifiers/conv_operand_swapper.cc`)."""

from hlofuse.ir import Computation, Instruction, Ints, numbered, replace
from hlofuse.ir.attributes.window import (
    ConvolutionDimensionNumbers,
    PaddingConfig,
    PaddingDimension,
    Window,
    WindowDimension,
)
from hlofuse.ir.shape import FLOATING_TYPES, Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.shapes import (
    array,
    is_sorted,
    labels_of,
    permuted,
    window_of,
    without_ones,
)
from .context import Context, is_all, is_of_parameters

_SUPPORTED = (None, "dot_f32_f32_f32")


def swapped(dot: Instruction, shape: Shape, order: Ints) -> Instruction:
    """dot(b, a), its batch dimensions in `order`."""
    dims = DotDimensions.of(dot)
    batch = [[own[k] for k in order] for own in (dims.rhs_batch, dims.lhs_batch)]
    new = new_dot(dot, dot.operands[::-1], batch, [dims.rhs_contracting, dims.lhs_contracting])
    new.shape = shape
    new.attributes = new.attributes.updated(**_swapped_precision(dot))
    return new


def _swapped_precision(x: Instruction) -> dict[str, str]:
    given = x.attributes.given("operand_precision")
    for name, text in given.items():
        levels = text.strip("{}").split(",")
        given[name] = "{" + ",".join(reversed(levels)) + "}"
    return given


def handle_dot(c: Context, dot: Instruction) -> bool:
    if c.options.layout_sensitive or dot.operand_count != 2:
        return False
    if any(x.element_count == 0 for x in (dot, *dot.operands)):
        return c.broadcast(dot, make.scalar(dot, dot.element_type, 0))
    supported, dims = dot.raw("algorithm") in _SUPPORTED, DotDimensions.of(dot)
    if supported and c.options.dot_to_multiply and not dims.lhs_contracting:
        # Without contraction: a product of broadcasts (`RewriteAsMultiplyDotWithZeroLhsContractingDim`).
        lhs, rhs = dot.operands
        left, right = _normalize(dot, 0), _normalize(dot, 1)
        rank, batch = dot.rank, len(DotDimensions.of(dot).lhs_batch)
        if rank != lhs.rank:
            left = make.broadcast(dot, dot.shape, left, range(lhs.rank))
        if rank != rhs.rank:
            places = [*range(batch), *range(lhs.rank, rank)]
            right = make.broadcast(dot, dot.shape, right, places)
        return c.binary(dot, "multiply", left, right)
    is_on = c.options.dot_strength_reduction and (
        c.release.cpu_sums_products or not c.options.executing_on_cpu
    )
    if supported and is_on:
        only = [not dims.free(side, o.rank) for side, o in enumerate(dot.operands)]
        if all(only) or (any(only) and not c.options.executing_on_cpu):
            return _as_reduction(c, dot)
    return _drop_ones(c, dot) or _drop_transposes(c, dot)


def _normalize(dot: Instruction, side: int) -> Instruction:
    """Batch dimensions first, contracted ones last (`NormalizeDotOperandToBatchMajorAndContractingMinor`)."""
    operand = dot.operands[side]
    dims = DotDimensions.of(dot)
    order = [*dims.batch(side), *dims.free(side, operand.rank), *dims.contracting(side)]
    if not is_sorted(order):
        operand = make.transpose(operand, operand, order)
    return make.convert(operand, operand, dot.element_type)


def _as_reduction(c: Context, dot: Instruction) -> bool:
    """One side has no free dimensions: a sum of products (`RewriteBatchPlusContractingAsReduce`)."""
    left, right = _normalize(dot, 0), _normalize(dot, 1)
    batch, contracting = map(len, DotDimensions.of(dot).fixed(0))
    outer_left, outer_right = (o.rank - batch - contracting for o in dot.operands)
    outer = max(outer_left, outer_right)
    across = [*range(batch), *range(batch + outer, batch + outer + contracting)]
    if outer_right > 0:
        left = make.broadcast(dot, right.shape, left, across)
    elif outer_left > 0:
        right = make.broadcast(dot, left.shape, right, across)
    element_type = dot.element_type
    summed = element_type
    if element_type in FLOATING_TYPES and element_type != "f64":
        summed = "f32"
    product = make.convert(dot, make.binary(dot, "multiply", left, right), summed)
    zero = make.scalar(dot, summed, 0)
    function = _add_computation(dot, summed)
    total = make.reduce(dot, product, zero, range(batch + outer, batch + outer + contracting), function)
    return c.become(dot, make.convert, total, element_type)


def _add_computation(at: Instruction, element_type: str) -> Computation:
    """A computation that adds two scalars, one that is there if any (`GetOrCreateScalarAddComputation`)."""
    shape = array(element_type)
    for existing in at.parent.parent.computations:
        plain = len(existing) == 3 and existing.root.shape.key == shape.key
        if plain and existing.name.startswith("scalar_add_computation") and is_of_parameters(existing, "add"):
            return existing
    return make.reducer(at, "scalar_add_computation", "add", element_type, ("scalar_lhs", "scalar_rhs"))


def _drop_ones(c: Context, dot: Instruction) -> bool:
    """No dimension of size 1 (`RemoveDegenerateDimensionFromDot`)."""
    sizes = [o.sizes for o in dot.operands]
    if 1 not in sizes[0] and 1 not in sizes[1]:
        return False
    remaining = ([d for d, n in enumerate(own) if n != 1] for own in sizes)
    batch, contracting = DotDimensions.of(dot).moved(*(numbered(own) for own in remaining))
    operands = [make.reshape(dot, without_ones(o.shape), o) if 1 in o.sizes else o for o in dot.operands]
    new = new_dot(dot, operands, batch, contracting)
    if new.shape.key_ignoring_layout != dot.shape.key_ignoring_layout:
        new = make.reshape(dot, dot.shape, new)
    return c.replace(dot, new)


def _drop_transposes(c: Context, dot: Instruction) -> bool:
    """Both operands transposed alike: the product is, instead (`RemoveTransposesFromDotOperands`)."""
    lhs, rhs = dot.operands
    rank = dot.rank
    if not lhs.is_transpose or not rhs.is_transpose or lhs.dimensions != rhs.dimensions:
        return False
    permutation = lhs.dimensions
    dims = DotDimensions.of(dot)
    batch, contracting = zip(dims.fixed(0), dims.fixed(1), strict=True)
    if batch[0] != batch[1] or len(batch[0]) != rank - 2:
        return False
    if contracting != ((rank - 1,), (rank - 2,)):
        return False
    if sorted(permutation[-2:]) != [rank - 2, rank - 1]:
        return False
    a, b = lhs.operand, rhs.operand
    flipped = permutation[-1] == rank - 2
    operands = [b, a] if flipped else [a, b]
    new = new_dot(dot, operands, batch, contracting)
    new.shape = permuted(dot.shape, permutation)
    return c.replace(dot, make.transpose(dot, new, permutation, dot.shape))


_NONE = PaddingDimension(0, 0)


def handle_convolution(c: Context, conv: Instruction) -> bool:
    if any(o.element_count == 0 for o in conv.operands):
        return c.become(conv, make.scalar_like, 0)
    rewrites = _with_padded_input, _swap_operands, _convolution_to_dot
    return any(rewrite(c, conv) for rewrite in rewrites)


def _has_groups(conv: Instruction) -> bool:
    return any(int(conv.raw(n) or 1) > 1 for n in ("feature_group_count", "batch_group_count"))


def _convolution_to_dot(c: Context, conv: Instruction) -> bool:
    """`SimplifyConvToDot`: a filter of one element at each place, in the order of a matrix product."""
    source, kernel = conv.operands
    labels = labels_of(conv)
    minor = source.minor_to_major
    channels = labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension
    depth, width = sizes = [kernel.sizes[d] for d in channels]
    if not c.options.layout_sensitive or depth * width != kernel.element_count or _has_groups(conv):
        return False
    outer, inner = map(kernel.minor_to_major.index, channels)
    last = labels.input_feature_dimension, labels.output_feature_dimension
    if minor != conv.minor_to_major or last != minor[:1] * 2 or outer < inner:
        return False
    if any(w.stride * w.base_dilation != 1 or w.padding_low or w.padding_high for w in window_of(conv)):
        return False
    shapes = [source.element_count // depth, depth], sizes
    pairs = zip(conv.operands, shapes, strict=True)
    parts = [make.bitcast(o, array(o.element_type, n)) for o, n in pairs]
    dot = new_dot(conv, parts, [(), ()], [(1,), (0,)])
    return c.replace(conv, make.bitcast(dot, conv.shape))


def change_window(
    c: Context, conv: Instruction, operands: list[Instruction], window: list[WindowDimension]
) -> bool:
    return c.become(conv, make.copy_of, operands, window=Window(window))


def _with_padded_input(c: Context, conv: Instruction) -> bool:
    """`FoldConvInputPad`."""
    pad, kernel = conv.operands
    if pad.opcode != "pad" or not pad.second.is_constant or not is_all(pad.second, 0):
        return False
    labels = labels_of(conv)
    config: PaddingConfig = pad.attributes["padding"]
    if any(config[d] != _NONE for d in (labels.input_batch_dimension, labels.input_feature_dimension)):
        return False
    window = []
    for w, d in zip(window_of(conv), labels.input_spatial_dimensions, strict=True):
        p = config[d]
        is_dilated = w.base_dilation != 1 and p != _NONE
        if is_dilated or (p.interior and (w.padding_low or w.padding_high)):
            return False
        low, high = w.padding_low + p.low, w.padding_high + p.high
        window.append(
            replace(w, padding_low=low, padding_high=high, base_dilation=w.base_dilation + p.interior)
        )
    return change_window(c, conv, [pad.operand, kernel], window)


def _swap_operands(c: Context, conv: Instruction) -> bool:
    """`SwapConvolutionOperandsIfBeneficial`."""
    if not c.options.conv_operand_swap or c.options.layout_sensitive:
        return False
    if _has_groups(conv) or "sparsity" in conv.attributes:
        return False
    source, kernel = conv.operands
    labels = labels_of(conv)
    window, reversed_ = [], []
    unchanged_size = exchanged = 1
    for w, d, k in zip(
        window_of(conv), labels.input_spatial_dimensions, labels.kernel_spatial_dimensions, strict=True
    ):
        size = source.sizes[d]
        if _stays(w, size):
            window.append(w)
            continue
        unchanged_size *= w.size
        covers_one = size == w.stride == w.window_dilation == 1
        covers_one &= w.padding_high == w.padding_low == w.size - 1
        exchanged *= w.size if covers_one else size
        if not w.window_reversal:
            reversed_.append(k)
        window.append(_other(w, size))
    if unchanged_size <= exchanged:
        return False
    if reversed_:
        kernel = make.added(kernel, "reverse", kernel.shape, [kernel], dimensions=reversed_)
    new = make.derived(
        conv,
        "convolution",
        conv.shape,
        [kernel, source],
        window=Window(window),
        dim_labels=ConvolutionDimensionNumbers(
            labels.rhs.translate(str.maketrans("io", "fb")),
            labels.lhs.translate(str.maketrans("bf", "oi")),
            labels.output.translate(str.maketrans("bf", "fb")),
        ),
        **_swapped_precision(conv),
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
