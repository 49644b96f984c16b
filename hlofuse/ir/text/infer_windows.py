"""Shapes of windowed operations (`InferWindowOutputShape`, `InferConvolveShape`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.shape import BIT_WIDTH, Shape

if TYPE_CHECKING:
    from hlofuse.ir.attributes.attributes import Attributes
    from hlofuse.ir.graph import Computation, Instruction


def output_size(size: int, dimension: WindowDimension) -> int:
    dilated = (size - 1) * dimension.base_dilation + 1 if size else 0
    padded = dilated + dimension.padding_low + dimension.padding_high
    reach = (dimension.size - 1) * dimension.window_dilation + 1 if dimension.size else 0
    return (padded - reach) // dimension.stride + 1 if padded >= reach and padded > 0 else 0


def reduce_window(given: Given) -> Shape:
    """Infer one result for each input."""
    window = _window_of(given)
    return Shape.maybe_tuple_of([_moved(s, window) for s in given.shapes[: len(given.shapes) // 2]])


def _window_of(given: Given) -> Window:
    found: Window = given.get("window", Window())
    return found


def _moved(shape: Shape, window: Window) -> Shape:
    pairs = zip(shape.dimensions, window, strict=True)
    return Shape(shape.element_type, tuple(output_size(size, d) for size, d in pairs))


def select_and_scatter(given: Given) -> Shape:
    """The operand's shape, if the source fits the window."""
    operand, source = given.shapes[:2]
    if _moved(operand, _window_of(given)).dimensions != source.dimensions:
        raise ValueError
    return operand


def convolution(given: Given) -> Shape:
    """Infer batch, feature and spatial dimensions in their order."""
    left, right = given.shapes[:2]
    numbers = given["dim_labels"]
    window = _window_of(given)
    batch = left.dimensions[numbers.input_batch_dimension] // given.get("batch_group_count", 1)
    feature = right.dimensions[numbers.kernel_output_feature_dimension]
    spatial = [left.dimensions[d] for d in numbers.input_spatial_dimensions]
    sizes = [0] * len(left.dimensions)
    sizes[numbers.output_batch_dimension] = batch
    sizes[numbers.output_feature_dimension] = feature
    places = zip(numbers.output_spatial_dimensions, spatial, window, strict=True)
    for place, size, dimension in places:
        sizes[place] = output_size(size, dimension)
    return Shape(max(left.element_type, right.element_type, key=BIT_WIDTH.__getitem__), tuple(sizes))


def dot(given: Given) -> Shape:
    """Infer batch dimensions, then the remaining ones of either side; a ragged contraction has a result for
    each group."""
    left, right = given.shapes[0], given.shapes[2 if given.opcode == "scaled-dot" else 1]
    lc, rc = given.get("lhs_contracting_dims"), given.get("rhs_contracting_dims")
    lb, rb = given.get("lhs_batch_dims"), given.get("rhs_batch_dims")
    if len(lc) != len(rc) or len(lb) != len(rb):
        raise Unfit("contracts (or batches) a different number of dimensions on each side")
    meeting = zip((*lc, *lb), (*rc, *rb), strict=True)
    if given.opcode == "dot" and any(left.dimensions[a] != right.dimensions[b] for a, b in meeting):
        raise Unfit(f"of {left} and {right}: dimensions that meet differ in size")
    sizes = [left.dimensions[d] for d in lb]
    if given.opcode == "ragged-dot" and given["lhs_ragged_dims"][0] in lc:
        sizes.insert(0, given.shapes[2].dimensions[-1])
    merged = {*rc, *rb, *given.get("rhs_group_dims")}
    sizes += [d for n, d in enumerate(left.dimensions) if n not in lc and n not in lb]
    sizes += [d for n, d in enumerate(right.dimensions) if n not in merged]
    element_type = max(left.element_type, right.element_type, key=BIT_WIDTH.__getitem__)
    return Shape(element_type, tuple(sizes))


def gather(given: Given) -> Shape:
    """Infer the indices' batch dimensions interleaved with the slices'."""
    shape, indices = given.shapes
    offsets, sizes = given["offset_dims"], given["slice_sizes"]
    dropped = {*given["collapsed_slice_dims"], *given.get("operand_batching_dims")}
    window = [d for n, d in enumerate(sizes) if n not in dropped]
    batch = [d for n, d in enumerate(indices.dimensions) if n != given["index_vector_dim"]]
    if any(not 0 <= size <= d for size, d in zip(sizes, shape.dimensions, strict=True)):
        raise Unfit(f"takes slices {list(sizes)} of {shape}")
    if len(window) != len(offsets):
        raise Unfit(f"has {len(offsets)} offset_dims for {len(window)} slice sizes")
    out = [window.pop(0) if n in offsets else batch.pop(0) for n in range(len(window) + len(batch))]
    return Shape(shape.element_type, tuple(out))


def scatter(given: Given) -> Shape:
    """The operands' shape, if the updates have the rank of the dimension numbers."""
    count = len(given.shapes) // 2
    indices = given.shapes[count]
    rank = len(given["update_window_dims"]) + len(indices.dimensions)
    rank -= given["index_vector_dim"] < len(indices.dimensions)
    if any(len(s.dimensions) != rank for s in given.shapes[count + 1 :]):
        raise Unfit(f"takes updates of rank {rank}")
    return Shape.maybe_tuple_of(given.shapes[:count])


def scan(given: Given) -> Shape:
    """The carried values, and the outputs with the scanned dimension first."""
    carries, dimension = given["num_carries"], given["dimensions"][0]
    if carries >= len(given.shapes):
        raise Unfit("has no inputs")
    size = given.shapes[0].dimensions[dimension]
    root = given.result("to_apply")
    if not root.is_tuple:
        return root if carries else _insert_dimension(root, dimension, size)
    outputs = len(root.tuple_shapes) - carries
    return Shape.tuple_of(
        [_insert_dimension(s, dimension, size) if n < outputs else s for n, s in enumerate(root.tuple_shapes)]
    )


def _insert_dimension(shape: Shape, dimension: int, size: int) -> Shape:
    sizes = shape.dimensions
    return Shape(shape.element_type, (*sizes[:dimension], size, *sizes[dimension:]))


class Unfit(Exception):
    """Incompatible operands."""


class Given:
    """An instruction's operand shapes, attribute values and the results of what it calls."""

    def __init__(
        self,
        opcode: str,
        operands: Sequence[Instruction],
        values: Mapping[str, Any] | Attributes,
        called: Mapping[str, Computation],
    ) -> None:
        self.opcode = opcode
        self.shapes = [o.shape for o in operands]
        self._values = values
        self._called = called

    def __getitem__(self, attribute: str) -> Any:
        return self._values[attribute]

    def get(self, attribute: str, default: Any = ()) -> Any:
        return self._values.get(attribute, default)

    def check_arity(self) -> None:
        """Check that the applied computation has as many parameters as there are operands."""
        wanted = len(self._called["to_apply"].parameters)
        if wanted != len(self.shapes):
            raise Unfit(f"calls a computation of {wanted} parameters with {len(self.shapes)} operands")

    def result(self, attribute: str) -> Shape:
        return self._called[attribute].root.shape
