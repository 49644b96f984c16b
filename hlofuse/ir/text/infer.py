"""The result's shape where the text leaves it out (`xla/service/shape_inference.cc`). Layouts follow the
operand where the result has its dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.opcodes import values, with_operands, with_trait
from hlofuse.ir.record import replace
from hlofuse.ir.shape import BIT_WIDTH, COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES, UNBOUNDED, Layout, Shape
from .errors import Rejected, counted_dimensions

if TYPE_CHECKING:
    from hlofuse.ir.attributes.attributes import Attributes
    from hlofuse.ir.graph import Computation, InstructionSequence
    from hlofuse.ir.text.tree.nodes import InstructionNode

TOKEN = Shape("token")
_FLOATING = values("floor cbrt ceil erf round-nearest-afz round-nearest-even is-finite")
_FLOATING_OR_COMPLEX = values(
    "asin asinh acos acosh atanh cosh cosine sinh sine exponential exponential-minus-one log log-plus-one"
    " logistic rsqrt sqrt tan tanh real imag"
)
_UNARY_TYPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(_FLOATING, FLOATING_TYPES),
    **dict.fromkeys(_FLOATING_OR_COMPLEX, FLOATING_TYPES | COMPLEX_TYPES),
    **dict.fromkeys(("count-leading-zeros", "popcnt"), INTEGER_TYPES),
    "not": INTEGER_TYPES | {"pred"},
    "negate": INTEGER_TYPES | FLOATING_TYPES | COMPLEX_TYPES,
    **dict.fromkeys(
        ("abs", "sign"), frozenset(t for t in INTEGER_TYPES if t[0] == "s") | FLOATING_TYPES | COMPLEX_TYPES
    ),
}
_BINARY = (with_trait("elementwise") & with_operands(2)) - {"stochastic-convert"}


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
    """Batch dimensions, then the remaining ones of either side; a ragged contraction has a result a group."""
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
        operands: InstructionSequence,
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


def infer_shape(
    node: InstructionNode, operands: InstructionSequence, called: Mapping[str, Computation]
) -> Shape:
    """The shape of the result; raises `Rejected` for incompatible operands."""
    given_values = {a.name: a.value for a in node.attributes}
    given = Given(str(node.call.opcode), operands, given_values, called)
    opcode = given.opcode
    where = node.call.opcode
    try:
        if opcode in _UNARY_TYPES:
            shape = _array(given.shapes[0])
            if shape.element_type not in _UNARY_TYPES[given.opcode]:
                raise Unfit(f"is not defined for {shape.element_type}")
            if given.opcode == "is-finite":
                return shape.with_element_type("pred")
            if given.opcode in ("real", "imag", "abs") and shape.element_type in COMPLEX_TYPES:
                return shape.with_element_type("f32" if shape.element_type == "c64" else "f64")
            return shape
        if opcode in _BINARY:
            return _binary(given)
        return RULES[opcode](given)
    except Unfit as error:
        raise Rejected(where, f"{opcode} {error}") from None
    except (IndexError, KeyError, ValueError):
        shapes = ", ".join(map(str, given.shapes))
        message = f"missing shape: the result of {opcode} cannot be inferred from ({shapes})"
        raise Rejected(where, message) from None


def _array(shape: Shape) -> Shape:
    if not shape.is_array:
        raise Unfit(f"takes arrays, not {shape}")
    return shape


def _binary(given: Given) -> Shape:
    left, right = map(_array, given.shapes)
    types = (left.element_type, right.element_type)
    if types[0] != types[1] and not FLOATING_TYPES.issuperset(types):
        raise Unfit(f"takes operands of one type, not {types[0]} and {types[1]}")
    shape = left.with_element_type(max(types, key=BIT_WIDTH.__getitem__))
    if left.dimensions != right.dimensions:
        if not left.dimensions or not right.dimensions:
            shape = replace(left if left.dimensions else right, element_type=shape.element_type)
        elif len(left.dimensions) != len(right.dimensions):
            raise Unfit(f"takes operands of one rank, not {left} and {right}")
        else:
            shape = Shape(shape.element_type, _broadcast_dimensions(left, right))
    if given.opcode == "compare":
        return shape.with_element_type("pred")
    if given.opcode == "complex":
        if shape.element_type not in ("f32", "f64"):
            raise Unfit(f"is made of f32 or f64, not {shape.element_type}")
        return shape.with_element_type("c64" if shape.element_type == "f32" else "c128")
    return shape


def _broadcast_dimensions(left: Shape, right: Shape) -> tuple[int, ...]:
    out = []
    for a, b in zip(left.dimensions, right.dimensions, strict=True):
        if a != b and 1 not in (a, b) and UNBOUNDED not in (a, b):
            raise Unfit(f"takes operands of the same dimensions, not {left} and {right}")
        out.append(b if a == 1 else a)
    return tuple(out)


def _cholesky(given: Given) -> Shape:
    shape = _array(given.shapes[0])
    if len(shape.dimensions) < 2 or shape.dimensions[-1] != shape.dimensions[-2]:
        raise Unfit(f"takes square matrices, not {shape}")
    return shape


def _while(given: Given) -> Shape:
    shape, condition, body = given.shapes[0], given.result("condition"), given.result("body")
    if condition.element_type != "pred" or condition.dimensions:
        raise Unfit(f"goes on by a pred[], not {condition}")
    if body.key_ignoring_layout != shape.key_ignoring_layout:
        raise Unfit(f"begins with {shape}, but its body makes {body}")
    return shape


def _second(given: Given) -> Shape:
    return given.shapes[1]


def _select(given: Given) -> Shape:
    predicate, on_true, on_false = map(_array, given.shapes)
    if predicate.element_type != "pred" or on_true.dimensions != on_false.dimensions:
        raise Unfit(f"takes pred and two arrays of one shape, not {', '.join(map(str, given.shapes))}")
    if predicate.dimensions and predicate.dimensions != on_true.dimensions:
        raise Unfit(f"takes a pred[] or one of the same dimensions, not {predicate}")
    return on_true


def _element(given: Given) -> Shape:
    shape = given.shapes[0]
    index: int = given["index"]
    if not shape.has_index([index]):
        raise Unfit(f"has no element {index} to take from {shape}")
    return shape.tuple_shapes[index]


def _concatenate(given: Given) -> Shape:
    shapes = [_array(s) for s in given.shapes]
    dimension = given["dimensions"][0]
    sizes = list(shapes[0].dimensions)
    others = {s.dimensions[:dimension] + s.dimensions[dimension + 1 :] for s in shapes}
    if len(others) != 1 or not 0 <= dimension < len(sizes):
        raise Unfit(f"cannot join {', '.join(map(str, shapes))} along dimension {dimension}")
    sizes[dimension] = sum(s.dimensions[dimension] for s in shapes)
    return Shape(shapes[0].element_type, tuple(sizes))


def _transpose(given: Given) -> Shape:
    shape, order = _array(given.shapes[0]), given["dimensions"]
    if sorted(order) != list(range(len(shape.dimensions))):
        raise Unfit(f"must order all {len(shape.dimensions)} dimensions")
    moved = tuple(n for n, d in enumerate(order) if d in shape.dynamic_dimensions)
    # The data stay where they are; only the dimensions change places.
    layout = Layout(tuple(order.index(d) for d in shape.minor_to_major))
    return Shape(shape.element_type, tuple(shape.dimensions[d] for d in order), layout, (), moved)


def _broadcast(given: Given) -> Shape:
    # XLA reads `dimensions` as the sizes to put in front here.
    shape = _array(given.shapes[0])
    return Shape(shape.element_type, (*given.get("dimensions"), *shape.dimensions))


def _reduce(given: Given) -> Shape:
    count = len(given.shapes) // 2
    shape = _array(given.shapes[0])
    away = given["dimensions"]
    if any(not 0 <= d < len(shape.dimensions) for d in away):
        raise Unfit(f"over dimensions that {shape} does not have")
    remaining = tuple(d for n, d in enumerate(shape.dimensions) if n not in away)
    result = given.result("to_apply")
    types = [s.element_type for s in result.tuple_shapes] if result.is_tuple else [result.element_type]
    if len(types) != count:
        raise Unfit(f"of {count} arrays by a computation with {len(types)} results")
    shapes = [Shape(t, remaining) for t in types]
    return Shape.tuple_of(shapes) if result.is_tuple else shapes[0]


def _pad(given: Given) -> Shape:
    shape = _array(given.shapes[0])
    padding = given["padding"]
    if len(padding) != len(shape.dimensions):
        raise Unfit(f"pads {counted_dimensions(len(padding))} of {shape}")
    sizes = [
        d + p.low + p.high + max(d - 1, 0) * p.interior
        for d, p in zip(shape.dimensions, padding, strict=True)
    ]
    if min(sizes, default=0) < 0:
        raise Unfit("leaves less than nothing")
    return Shape(shape.element_type, tuple(sizes))


def _call(given: Given) -> Shape:
    given.check_arity()
    return given.result("to_apply")


def _map(given: Given) -> Shape:
    given.check_arity()
    # XLA goes by the attribute, which may be missing only where there is nothing to say.
    if given.shapes[0].dimensions and not given.get("dimensions"):
        raise Unfit("needs its dimensions to infer the shape")
    return Shape(given.result("to_apply").element_type, _array(given.shapes[0]).dimensions)


def _fft(given: Given) -> Shape:
    shape, lengths, kind = given.shapes[0], given["fft_length"], given["fft_type"]
    sizes = list(shape.dimensions)
    if kind == "RFFT":
        sizes[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
        return Shape("c64" if shape.element_type == "f32" else "c128", tuple(sizes))
    if kind == "IRFFT":
        sizes[-1] = lengths[-1]
        return Shape("f32" if shape.element_type == "c64" else "f64", tuple(sizes))
    return shape


def _batch_norm(given: Given) -> Shape:
    shape = given.shapes[0]
    feature = Shape(shape.element_type, (shape.dimensions[given["feature_index"]],))
    return shape if given.opcode == "batch-norm-inference" else Shape.tuple_of([shape, feature, feature])


def _top_k(given: Given) -> Shape:
    shape, k = _array(given.shapes[0]), given["k"]
    if shape.dimensions[-1] < k:
        raise Unfit(f"takes {k} of {shape.dimensions[-1]} elements")
    sizes = (*shape.dimensions[:-1], k)
    return Shape.tuple_of([Shape(shape.element_type, sizes), Shape("s32", sizes)])


def _set_dimension_size(given: Given) -> Shape:
    shape, dimension = given.shapes[0], given["dimensions"][0]
    return replace(shape, dynamic_dimensions=tuple(sorted({*shape.dynamic_dimensions, dimension})))


def _conditional(given: Given) -> Shape:
    key = "true_computation" if given.shapes[0].element_type == "pred" else "branch_computations"
    return given.result(key)


RULES: dict[str, Callable[[Given], Shape]] = {
    **dict.fromkeys(values("copy domain add-dependency reverse"), lambda given: given.shapes[0]),
    "cholesky": _cholesky,
    "while": _while,
    "clamp": _second,  # low, value, high
    "triangular-solve": _second,
    "select": _select,
    "tuple": lambda given: Shape.tuple_of(given.shapes),
    "sort": lambda given: Shape.maybe_tuple_of(given.shapes),
    "scatter": scatter,
    "after-all": lambda given: TOKEN,
    "send-done": lambda given: TOKEN,
    "partition-id": lambda given: Shape("u32"),
    "replica-id": lambda given: Shape("u32"),
    "get-dimension-size": lambda given: Shape("s32"),
    "call": _call,
    "conditional": _conditional,
    "get-tuple-element": _element,
    "concatenate": _concatenate,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "pad": _pad,
    "dot": dot,
    "scaled-dot": dot,
    "ragged-dot": dot,
    "map": _map,
    "fft": _fft,
    "batch-norm-training": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-grad": _batch_norm,
    "topk": _top_k,
    "gather": gather,
    "scan": scan,
    "set-dimension-size": _set_dimension_size,
    "send": lambda given: Shape.tuple_of([given.shapes[0], Shape("u32"), TOKEN]),
    "recv-done": lambda given: Shape.tuple_of([given.shapes[0].tuple_shapes[0], TOKEN]),
    "convolution": convolution,
    "reduce-window": reduce_window,
    "select-and-scatter": select_and_scatter,
}
