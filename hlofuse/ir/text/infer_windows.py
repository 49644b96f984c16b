"""Shapes of what a window is moved over (`InferWindowOutputShape`, `InferConvolveShape`)."""

from __future__ import annotations

from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.shape import BIT_WIDTH, Shape
from hlofuse.ir.text.infer_given import Given


def output_size(size: int, dimension: WindowDimension) -> int:
    """How many places a window finds along a dimension."""
    dilated = (size - 1) * dimension.base_dilation + 1 if size else 0
    padded = dilated + dimension.padding_low + dimension.padding_high
    reach = (dimension.size - 1) * dimension.window_dilation + 1 if dimension.size else 0
    return (padded - reach) // dimension.stride + 1 if padded >= reach and padded > 0 else 0


def reduce_window(given: Given) -> Shape:
    """One result for each input."""
    window = _window_of(given)
    count = len(given.shapes) // 2
    shapes = [_moved(s, window) for s in given.shapes[:count]]
    return shapes[0] if count == 1 else Shape.tuple_of(shapes)


def _window_of(given: Given) -> Window:
    found: Window = given.get("window", Window())
    return found


def _moved(shape: Shape, window: Window) -> Shape:
    pairs = zip(shape.dimensions, window.dimensions, strict=True)
    return Shape(shape.element_type, tuple(output_size(size, d) for size, d in pairs))


def select_and_scatter(given: Given) -> Shape:
    """The operand's shape, once the window gives that of the source."""
    operand, source = given.shapes[:2]
    if _moved(operand, _window_of(given)).dimensions != source.dimensions:
        raise ValueError
    return operand


def convolution(given: Given) -> Shape:
    """Batch, features and spatial dimensions, each in its place."""
    left, right = given.shapes[:2]
    numbers = given["dim_labels"]
    window = _window_of(given)
    batch = left.dimensions[numbers.input_batch_dimension] // given.get("batch_group_count", 1)
    feature = right.dimensions[numbers.kernel_output_feature_dimension]
    spatial = [left.dimensions[d] for d in numbers.input_spatial_dimensions]
    sizes = [0] * len(left.dimensions)
    sizes[numbers.output_batch_dimension] = batch
    sizes[numbers.output_feature_dimension] = feature
    places = zip(numbers.output_spatial_dimensions, spatial, window.dimensions, strict=True)
    for place, size, dimension in places:
        sizes[place] = output_size(size, dimension)
    return Shape(max(left.element_type, right.element_type, key=BIT_WIDTH.__getitem__), tuple(sizes))
