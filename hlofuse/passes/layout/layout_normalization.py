"""Makes every array row-major (`xla/service/layout_normalization.cc`), reshapes and broadcasts, too."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofuse.analysis.elementwise import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from hlofuse.cost.gpu.shapes import inverse, reshape_is_bitcast
from hlofuse.ir import Dims, Instruction, Instructions, Module, Predicate, Shape, set_attribute
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, SliceRanges, Window
from hlofuse.passes.base import NotRepresentable, Pass, VisitPass, expand_each, replaced, visit_module
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import set_called
from hlofuse.passes.common.evaluation import reinterpreted
from hlofuse.passes.common.literals import values_of
from hlofuse.passes.common.make import add, added, bitcast, copied, copy_of, derived, transposed
from hlofuse.passes.common.shapes import (
    aligned,
    array,
    descending,
    labels_of,
    permute,
    physical,
    ranges_of,
    window_of,
    with_layout,
)
from hlofuse.trace import Recorder


class ReshapeDecomposer(VisitPass):
    """A bitcast, if need be with copies (`xla/hlo/transforms/expanders/reshape_decomposer.cc`)."""

    name = "reshape-decomposer"
    opcodes = ("reshape",)

    def handle(self, reshape: Instruction) -> bool:
        operand = reshape.operand
        source, result = operand.shape, reshape.shape
        if reshape_is_bitcast(source, result):
            return replaced(reshape, bitcast(operand, result))
        if (before := aligned(result, source)) is not None:
            return replaced(reshape, bitcast(copied(operand, before), result))
        if (after := aligned(source, result)) is not None:
            return replaced(reshape, copied(bitcast(operand, after), result))
        plain = copied(operand, descending(source))
        return replaced(reshape, copied(bitcast(plain, descending(result)), result))


class BroadcastCanonicalizer(Pass):
    """`broadcast_canonicalizer`: what is broadcast is transposed first (`broadcast_canonicalizer.cc`)."""

    name = "broadcast_canonicalizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [
            x
            for computation in module.non_fusion_computations()
            for x in computation.post_order()
            if x.is_broadcast and list(x.dimensions) != sorted(x.dimensions)
        ]
        return expand_each(found, _canonicalize, recorder)


def _canonicalize(broadcast: Instruction) -> None:
    (operand,) = broadcast.operands
    places = list(broadcast.dimensions)
    permutation = [places.index(d) for d in sorted(places)]
    shape = operand.shape
    sizes = [shape.dimensions[d] for d in permutation]
    moved = transposed(operand, permutation, with_layout(shape.element_type, sizes, shape.minor_to_major))
    result = array(shape.element_type, broadcast.sizes)
    replaced(
        broadcast,
        added(moved, "broadcast", result, [moved], like=operand, dimensions=sorted(places)),
    )


def normalized_scatter(scatter: Instruction, inputs: Sequence[Instruction]) -> Instruction:
    """`inputs` are row-major (`LayoutNormalizationVisitor::HandleScatter`). Windows may come out unsorted."""
    count = len(inputs) // 2
    operand, indices, update = scatter.operand, scatter.operands[count], scatter.operands[count + 1]
    to_memory = operand.minor_to_major[::-1]
    in_operand = inverse(to_memory)
    in_indices = inverse(indices.minor_to_major[::-1])
    in_update = inverse(update.minor_to_major[::-1])
    a = scatter.attributes
    window = iter(in_update[d] for d in a.get("update_window_dims", ()))
    inserted = set(a.get("inserted_window_dims", ()))
    places = [-1 if d in inserted else next(window) for d in range(operand.rank)]
    moved = permute(places, to_memory)
    raw = dict[str, object](a.raw_items)
    raw["update_window_dims"] = [p for p in moved if p >= 0]
    raw["inserted_window_dims"] = [d for d, p in enumerate(moved) if p < 0]
    raw["scatter_dims_to_operand_dims"] = [in_operand[d] for d in a["scatter_dims_to_operand_dims"]]
    at = int(a["index_vector_dim"])
    raw["index_vector_dim"] = in_indices[at] if at < len(in_indices) else at
    shape = Shape.maybe_tuple_of([i.shape for i in inputs[:count]])
    for name in ("metadata", "sharding", "frontend_attributes", "control-predecessors"):
        raw.pop(name, None)
    new = derived(scatter, "scatter", shape, inputs, **raw)
    set_called(new, scatter.called)
    return new


CallTransformer = Callable[[Instruction], Instruction | None]


class LayoutNormalization(Pass):
    """`layout_normalization`; `transform_call` is what a target does with its own custom calls."""

    name = "layout_normalization"
    transform_call: CallTransformer | None = None

    def run(self, module: Module, recorder: Recorder) -> bool:
        visitor = _Visitor(self.transform_call)
        return visit_module(module, None, visitor.visit, recorder, visitor.visited)


def is_default(instruction: Instruction) -> bool:
    return instruction.is_array and instruction.shape.is_row_major


def normal_input(operand: Instruction) -> Instruction:
    """The row-major array that `operand` is, or is a bitcast of (`GetNormalizedInput`)."""
    if is_default(operand):
        return operand
    if not operand.is_bitcast or not is_default(operand.operand):
        raise NotRepresentable(f"{operand.name} is neither row-major nor a bitcast of what is")
    return operand.operand


def _normal_inputs(hlo: Instruction) -> Instructions:
    return [normal_input(o) for o in hlo.operands]


def maybe_bitcast(instruction: Instruction, shape: Shape) -> Instruction:
    return instruction if instruction.shape.key == shape.key else bitcast(instruction, shape)


def to_memory(shape: Shape) -> Dims:
    """Dimensions from major to minor: the transpose that makes it row-major (`ToTransposeDimensions`)."""
    return shape.minor_to_major[::-1]


class _Visitor:
    def __init__(self, transform_call: CallTransformer | None) -> None:
        self.visited = set[Instruction]()
        self._transform_call = transform_call
        self._handlers: dict[str, Predicate] = {
            **dict.fromkeys(ELEMENTWISE_UNARY, self._elementwise),
            **dict.fromkeys(ELEMENTWISE_BINARY, self._elementwise),
            "select": self._ternary,
            "clamp": self._ternary,
            "constant": self._constant,
            "slice": self._slice,
            "dynamic-slice": self._dynamic_slice,
            "dynamic-update-slice": self._dynamic_update_slice,
            "concatenate": self._concatenate,
            "reduce-window": self._reduce_window,
            "broadcast": self._broadcast,
            "iota": self._iota,
            "reshape": self._reshape,
            "scatter": self._scatter,
            "transpose": self._transpose,
            "copy": self._copy,
            "reverse": self._reverse,
            "pad": self._pad,
            "convolution": self._convolution,
            "custom-call": self._custom_call,
        }

    def visit(self, hlo: Instruction) -> bool:
        if is_default(hlo) and all(map(is_default, hlo.operands)):
            return False
        return self._handlers.get(hlo.opcode, self._default)(hlo)

    def _done(self, hlo: Instruction, new: Instruction) -> bool:
        self.visited.add(new)
        return replaced(hlo, maybe_bitcast(new, hlo.shape))

    def _added(self, hlo: Instruction, inputs: Instructions, **attributes: object) -> bool:
        new = add(hlo, hlo.opcode, physical(hlo.shape), inputs, copied_attributes=attributes)
        return self._done(hlo, new)

    def _derived(self, hlo: Instruction, inputs: Instructions, **attributes: object) -> bool:
        return self._done(hlo, derived(hlo, hlo.opcode, physical(hlo.shape), inputs, **attributes))

    def _default(self, hlo: Instruction) -> bool:
        """To row-major and back, so that users find a bitcast of a row-major array."""
        if not hlo.users or not hlo.is_array:
            return False
        users, shape = list(hlo.users), hlo.shape
        normal = maybe_bitcast(hlo, physical(shape))
        self.visited.add(normal)
        back = maybe_bitcast(normal, shape)
        if back is hlo:
            return False
        for user in users:
            hlo.replace_use_with(user, back)
        return True

    def _constant(self, hlo: Instruction) -> bool:
        if hlo.is_tuple or 0 in hlo.sizes:
            return False
        if hlo.rank > 1:
            return self._done(hlo, _reorder(hlo))
        shape = hlo.shape
        hlo.shape = physical(shape)
        hlo.replace_all_uses_with(maybe_bitcast(hlo, shape))
        return True

    def _elementwise(self, hlo: Instruction) -> bool:
        if hlo.opcode == "bitcast-convert" and hlo.rank != hlo.operand.rank:
            return self._default(hlo)
        if any(o.minor_to_major != hlo.minor_to_major for o in hlo.operands):
            raise NotRepresentable(f"{hlo.name} has another layout than its operands")
        inputs = _normal_inputs(hlo)
        return self._added(hlo, inputs, **hlo.attributes.given("direction", "exponent_bits", "mantissa_bits"))

    def _ternary(self, hlo: Instruction) -> bool:
        if hlo.second.minor_to_major != hlo.minor_to_major:
            raise NotRepresentable(f"{hlo.name} has another layout than its operands")
        return self._derived(hlo, _normal_inputs(hlo))

    def _slice(self, hlo: Instruction) -> bool:
        ranges = SliceRanges(ranges_of(hlo)[d] for d in to_memory(hlo.shape))
        return self._added(hlo, [normal_input(hlo.operand)], slice=ranges)

    def _dynamic_slice(self, hlo: Instruction) -> bool:
        order = to_memory(hlo.shape)
        source, *starts = hlo.operands
        sizes = [hlo.attributes["dynamic_slice_sizes"][d] for d in order]
        inputs = [normal_input(source), *(starts[d] for d in order)]
        return self._added(hlo, inputs, dynamic_slice_sizes=sizes)

    def _dynamic_update_slice(self, hlo: Instruction) -> bool:
        source, update, *starts = hlo.operands
        inputs = [normal_input(source), normal_input(update), *(starts[d] for d in to_memory(hlo.shape))]
        return self._added(hlo, inputs)

    def _concatenate(self, hlo: Instruction) -> bool:
        inputs = _normal_inputs(hlo)
        at = to_memory(hlo.shape).index(hlo.dimension)
        return self._derived(hlo, inputs, dimensions=[at])

    def _reduce_window(self, hlo: Instruction) -> bool:
        if hlo.is_tuple:
            return False
        operand, start = hlo.operands
        new = add(
            hlo,
            "reduce-window",
            physical(hlo.shape),
            [normal_input(operand), start],
            called=list(hlo.called),
            window=Window(window_of(hlo)[d] for d in to_memory(hlo.shape)),
        )
        return self._done(hlo, new)

    def _broadcast(self, hlo: Instruction) -> bool:
        operand = hlo.operand
        place = inverse(to_memory(hlo.shape))
        dims = [place[d] for d in permute(hlo.dimensions, to_memory(operand.shape))]
        return self._added(hlo, [normal_input(operand)], dimensions=dims)

    def _iota(self, hlo: Instruction) -> bool:
        at = to_memory(hlo.shape).index(int(hlo.attributes["iota_dimension"]))
        return self._derived(hlo, [], iota_dimension=at)

    def _reshape(self, hlo: Instruction) -> bool:
        source = normal_input(hlo.operand)
        return self._done(hlo, derived(source, "reshape", physical(hlo.shape), [source]))

    def _scatter(self, hlo: Instruction) -> bool:
        return self._done(hlo, normalized_scatter(hlo, _normal_inputs(hlo)))

    def _transpose(self, hlo: Instruction) -> bool:
        operand = hlo.operand
        source = normal_input(operand)
        moved = hlo.dimensions if hlo.is_transpose else range(hlo.rank)
        dims = permute(permute(inverse(to_memory(operand.shape)), moved), to_memory(hlo.shape))
        if hlo.is_transpose and list(dims) == sorted(dims):
            return replaced(hlo, maybe_bitcast(source, hlo.shape))
        shape = physical(hlo.shape)
        return self._done(hlo, derived(hlo, "transpose", shape, [source], dimensions=dims))

    def _copy(self, hlo: Instruction) -> bool:
        return self._transpose(hlo) if hlo.is_array else self._default(hlo)

    def _reverse(self, hlo: Instruction) -> bool:
        source = normal_input(hlo.operand)
        place = inverse(to_memory(hlo.shape))
        dims = sorted(place[d] for d in hlo.dimensions)
        return self._done(hlo, derived(hlo, "reverse", source.shape, [source], dimensions=dims))

    def _pad(self, hlo: Instruction) -> bool:
        operand, value = hlo.operands
        each = (hlo.raw("padding") or "").split("x")
        padding = "x".join(each[d] for d in to_memory(hlo.shape))
        return self._derived(hlo, [normal_input(operand), value], padding=padding)

    def _convolution(self, hlo: Instruction) -> bool:
        new = copy_of(hlo, _normal_inputs(hlo), physical(hlo.shape))
        labels = labels_of(hlo)
        arrays = zip((labels.lhs, labels.rhs, labels.output), (*hlo.operands, hlo), strict=True)
        moved = ["".join(text[d] for d in to_memory(x.shape)) for text, x in arrays]
        set_attribute(new, "dim_labels", ConvolutionDimensionNumbers(*moved))
        return self._done(hlo, new)

    def _custom_call(self, hlo: Instruction) -> bool:
        new = self._transform_call(hlo) if self._transform_call is not None else None
        if new is None:
            return self._default(hlo)
        self.visited.add(new.operand)
        return replaced(hlo, new)


def _reorder(constant: Instruction) -> Instruction:
    shape, values = constant.shape, values_of(constant)
    if values is None and constant.literal.is_elided:  # no less known in another order
        return make.add(constant, "constant", physical(shape), payload=constant.payload)
    if values is None:
        raise NotRepresentable(f"{constant.name} is a constant whose elements are not known")
    given = np.asarray(values).reshape(shape.dimensions)
    places = reinterpreted(given, shape, physical(shape))
    return make.constant(constant, physical(shape), places.ravel().tolist())
