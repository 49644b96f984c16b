"""Top-k as a sort and back to a library call (`xla/service/topk_rewriter.cc`)."""

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir import Computation, Instruction, Module, Predicate, Record, Shape
from hlofuse.ir.attributes.window import SliceRange, SliceRanges
from hlofuse.ir.opcodes import values
from hlofuse.passes.base import Pass, ReleasePass, accept_order, expand_each, find_each, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.shapes import array, ranges_of
from hlofuse.trace import Recorder

_INDEX = (1 << 16) - 1  # the bits of an index; those of the value are the others
_ALL_BUT_SIGN = (1 << 31) - 1


def is_packed(x: Instruction) -> bool:
    """True for a topk of the greatest bf16 values whose indices fit into half of an s32."""
    if x.opcode != "topk" or x.raw("largest", "true") != "true":
        return False
    data = x.operand.shape
    return data.element_type == "bf16" and data.dimensions[-1] <= _INDEX


def decompose_packed(topk: Instruction, greater: Computation) -> None:
    """Put the sort in the place of `topk`; `greater` compares two s32."""
    packed = _Packed(topk)
    (data,) = topk.operands
    values, indices = topk.shape.tuple_shapes
    whole = data.shape.with_element_type("s32")
    bits = packed.add("bitcast-convert", whole, packed.add("convert", whole.with_element_type("f32"), data))
    keys = packed.masked("or", packed.with_sign_flipped(bits), _INDEX)
    last = whole.rank - 1
    keys = packed.add("xor", whole, keys, packed.add("iota", whole, iota_dimension=last))
    ordered = make.added(topk, "sort", whole, [keys], called=greater, dimensions=[last])
    columns = SliceRanges(SliceRange(0, size, 1) for size in indices.dimensions)
    first = packed.add("slice", indices, ordered, slice=columns)
    high = packed.masked("and", packed.with_sign_flipped(first), ~_INDEX)
    single = packed.add("bitcast-convert", indices.with_element_type("f32"), high)
    value = packed.add("convert", values, single)
    index = packed.masked("and", packed.masked("xor", first, _INDEX), _INDEX)
    substituted(topk, packed.add("tuple", topk.shape, value, index))


class _Packed(Record):
    """Operations in the computation of `at`, without metadata."""

    at: Instruction

    def add(self, opcode: str, shape: Shape, *operands: Instruction, **attributes: object) -> Instruction:
        return make.added(self.at, opcode, shape, operands, raw_attributes=attributes)

    def masked(self, opcode: str, x: Instruction, bits: int) -> Instruction:
        """`x` and the same `bits` everywhere."""
        constant = make.added(self.at, "constant", array("s32"), [], payload=str(bits))
        return self.add(opcode, x.shape, x, self.add("broadcast", x.shape, constant, dimensions="{}"))

    def with_sign_flipped(self, x: Instruction) -> Instruction:
        """From sign and magnitude to ones' complement, or back, so that integers compare as the floats do."""
        magnitude = self.masked("and", x, _ALL_BUT_SIGN)
        return self.add("xor", x.shape, magnitude, self.masked("shift-right-arithmetic", x, 31))


_TOTAL = values("f16 bf16 f32 f64")
_COMPARED = values("bf16 f32 s32 u32")
# Floats compared as integers of their width.
_AS_INTEGERS = frozenset({("f32", "s32"), ("bf16", "s16")})


class TopkDecomposer(ReleasePass):
    name = "topk-decomposer"
    of_calls: bool = True

    def run(self, module: Module, recorder: Recorder) -> bool:
        def is_found(x: Instruction) -> bool:
            return x.opcode == "topk" or (self.of_calls and is_topk_call(x))

        def handle(topk: Instruction) -> None:
            if is_packed(topk) and self.release.packs_narrow_topk:
                decompose_packed(topk, comparator(topk.parent, ["s32"], "GT"))
            else:
                _decompose(topk)

        return expand_each(find_each(module, is_found, accept_order), handle, recorder)


def is_topk_call(x: Instruction) -> bool:
    """True for the call with its comparator; an older form names none, and XLA's pass cannot read it."""
    return custom_call_target(x) == "TopK" and bool(x.called)


def is_stable(topk: Instruction) -> bool:
    """`IsTopKStable`."""
    if topk.opcode == "topk":
        return topk.raw("is_stable", "true") == "true"
    return "is_stable = false" not in (topk.raw("backend_config") or "")


def _decompose(topk: Instruction) -> None:
    """`DecomposeTopKFallback`."""
    data = topk.operand
    last = data.rank - 1
    values_only = topk.user_count == 1 and topk.user.is_get_tuple_element and not topk.user.tuple_index
    if topk.opcode == "topk":
        types = [data.element_type] + ([] if values_only else ["s32"])
        greatest = topk.raw("largest", "true") == "true"
        function = comparator(topk.parent, types, "GT" if greatest else "LT")
    else:
        function = topk.to_apply
        values_only = values_only and len(function.parameters) == 2
    attributes = {"is_stable": "true"} if is_stable(topk) else {}

    def sort(shape: Shape, operands: list[Instruction]) -> Instruction:
        return make.add(
            topk, "sort", shape, operands, called=function, copied_attributes=attributes, dimensions=[last]
        )

    def first(x: Instruction, index: int) -> Instruction:
        sizes = topk.shape.tuple_shapes[index].dimensions
        return make.slice_of(topk, x, [0] * len(sizes), sizes)

    if values_only:
        new = first(sort(data.shape, [data]), 0)
        substituted(topk.user, new)
        return
    places = data.shape.with_element_type("s32")
    sorted_ = sort(Shape.tuple_of([data.shape, places]), [data, make.iota(topk, places, last)])
    elements = [first(make.get_tuple_element(topk, sorted_, k), k) for k in (0, 1)]
    substituted(topk, make.tuple_of(topk, elements))


def comparator(computation: Computation, types: list[str], direction: str) -> Computation:
    """Compares the first of the sorted arrays, floats in total order (`CreateScalarGtComputation`). XLA's
    builder numbers the names of what it builds, which begins with 1."""
    body = Computation("compare-greater-than.1" if direction == "GT" else "compare-less-than.1")
    sides = [
        body.append_parameter(f"p.{k}.{side}.1", array(element_type))
        for k, element_type in enumerate(types)
        for side in ("lhs", "rhs")
    ]
    root = Instruction("compare.1", array("pred"), "compare", sides[:2])
    root.attributes = root.attributes.updated(direction=direction)
    if types[0] in _TOTAL:
        root.attributes = root.attributes.updated(type="TOTALORDER")
    body.root = body.append_parsed(root)
    return computation.parent.add_computation(body)


class TopkRewriter(Pass):
    """`topk-rewriter`: sorts of which only the first are read become calls."""

    name = "topk-rewriter"
    is_profitable: Predicate

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in list(module.computations):
            for x in computation.post_order():
                if x.opcode == "sort" and x.computation is not None:
                    k = _result_count(x)
                    if k is not None and self._is_called(x):
                        _call(x, k)
                        changed = True
        return changed

    def _is_called(self, sort: Instruction) -> bool:
        shape = sort.operand.shape
        (dimension,) = sort.dimensions
        ends = dimension in (0, shape.rank - 1)
        return shape.element_type in ("f32", "bf16") and ends and self.is_profitable(sort)


def _result_count(sort: Instruction) -> int | None:
    """The number of sorted elements that are read (`SortIsInTopK`)."""
    count = sort.operand_count
    if count > 2 or (count == 2 and not _counts(sort)) or not _is_greater(sort.to_apply.root):
        return None
    (dimension,) = sort.dimensions
    wanted: int | None = None
    for user in sort.users:
        x = user
        if count == 2:
            if not user.is_get_tuple_element or user.user_count != 1:
                return None
            x = user.user
        if not x.is_slice:
            return None
        sizes = x.operand.sizes
        for d, r in enumerate(ranges_of(x)):
            if r.stride != 1 or (d != dimension and (r.start or r.limit != sizes[d])):
                return None
        limit = ranges_of(x)[dimension].limit
        if wanted not in (None, limit):
            return None
        wanted = limit
    return wanted


def _counts(sort: Instruction) -> bool:
    """`HasIota`: the second operand tells places."""
    data, other = sort.operands
    if other.opcode == "iota" and other.element_type == "s32":
        return other.sizes == data.sizes
    inner = other.past("broadcast")
    size = data.sizes[sort.dimension]
    return inner.opcode == "iota" and inner.element_type == "s32" and inner.sizes == (size,)


def _is_greater(root: Instruction) -> bool:
    """Compares the first two parameters, floats perhaps in total order (`IsNanSafeGt`)."""
    if root.opcode != "compare" or root.raw("direction") != "GT":
        return False
    a, b = root.operands
    if a.opcode == "parameter" == b.opcode:
        numbers = (a.parameter_number, b.parameter_number)
        return numbers == (0, 1) and a.element_type in _COMPARED
    return _in_total_order(a, 0) and _in_total_order(b, 1)


def _in_total_order(x: Instruction, number: int) -> bool:
    """select(bits < 0, bits xor greatest, bits), as `comparison_expander` writes it."""
    if x.opcode != "select":
        return False
    negative, flipped, bits = x.operands
    if bits.opcode != "bitcast-convert" or flipped.opcode != "xor" or bits not in flipped.operands:
        return False
    source = bits.operand
    types = (source.element_type, bits.element_type)
    if source.opcode == "convert" and types == ("f32", "s32"):
        source = source.operand
    if not source.is_parameter or source.parameter_number != number or types not in _AS_INTEGERS:
        return False
    most = flipped.second if flipped.operand is bits else flipped.operand
    if scalar_of(most) != (1 << (bits.shape.bit_width - 1)) - 1 or negative.opcode != "compare":
        return False
    zero = negative.second
    return negative.raw("direction") == "LT" and negative.operand is bits and scalar_of(zero) == 0


def _call(sort: Instruction, k: int) -> None:
    """`TransformPatternToCustomCall`."""
    data = sort.operand
    shape, (dimension,) = data.shape, sort.dimensions
    element_type, size = shape.element_type, shape.dimensions[sort.dimension]
    rows = shape.element_count // size
    several = shape.rank >= 2
    if shape.rank > 2:
        sizes = [size, rows] if dimension == 0 else [rows, size]
        data = make.reshape(sort, array(element_type, sizes), data)
    if several and dimension == 0:
        data = make.transpose(sort, data, [1, 0], array(element_type, [rows, size]))
    result = [rows, k] if several else [k]
    stable = "true" if sort.raw("is_stable") == "true" else "false"
    call = make.add(
        sort,
        "custom-call",
        Shape.tuple_of([array(element_type, result), array("s32", result)]),
        [data],
        called=[("called_computations", sort.to_apply)],
        custom_call_target='"TopK"',
    )
    call.attributes = call.attributes.updated(
        called_computations=f"{{{sort.to_apply.name}}}",
        backend_config=f"{{is_stable = {stable}}}",
    )
    elements = []
    for index in (0, 1):
        element = make.get_tuple_element(sort, call, index)
        of = element.element_type
        if several and dimension == 0:
            element = make.transpose(sort, element, [1, 0], array(of, [k, rows]))
        if shape.rank > 2:
            back = [k if d == dimension else n for d, n in enumerate(shape.dimensions)]
            element = make.reshape(sort, array(of, back), element)
        elements.append(element)
    for user in list(sort.users):
        if sort.operand_count == 2:
            for reader in list(user.users):
                _read(reader, elements[user.tuple_index])
        else:
            _read(user, elements[0])


def _read(reader: Instruction, element: Instruction) -> None:
    if reader.sizes == element.sizes:
        reader.replace_all_uses_with(element)
    else:
        reader.replace_operand(0, element)
