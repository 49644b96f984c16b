"""Passes on sorts. Sorts by CUB: what their comparators compare, and the memory they need."""

import json
from collections.abc import Sequence
from functools import partial

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import INTEGER_TYPES, Computation, Instruction, Module, Record, Shape, replace, values
from hlofuse.ir.texts import packaged
from hlofuse.passes.base import ExpandPass, Pass, RewritePass, any_change, find_each, replaced
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, set_called
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.make import added, derived
from hlofuse.passes.common.shapes import with_layout
from hlofuse.trace import Recorder

_MOST_PACKED_BYTES = 2 << 30
_FLOATS = ("bf16", "f16", "f32", "f64")


class Comparator(Record):
    """The operand and order of a sort's comparison, and the element types for CUB (`AnalyzeSortOp`)."""

    key: int
    descending: bool
    numpy_order: bool  # Zeros are equal and every NaN comes last, not in the order of the bits
    key_type: str
    value_type: str | None


def comparator_of(sort: Instruction) -> Comparator | None:
    """None where the sort compares otherwise than by one operand alone."""
    root = sort.to_apply.root
    direction = root.raw("direction")
    if root.opcode != "compare" or direction in ("EQ", "NE"):
        return None
    numpy_order = False
    sides = [_parameter(o) for o in root.operands]
    if None in sides:
        numpy_order = True
        sides = [_canonical_parameter(o) for o in root.operands]
    first, second = sides
    if first is None or second is None:
        return None
    low = min(first, second)
    if low % 2 or max(first, second) != low + 1:
        return None
    descending = (direction in ("GT", "GE")) != (low != first)
    types = _types(sort, low // 2, numpy_order)
    return Comparator(low // 2, descending, numpy_order, *types) if types is not None else None


def _types(sort: Instruction, key: int, numpy_order: bool) -> tuple[str, str | None] | None:
    """Types of keys and values; in NumPy's order keys are generated, and values hold the sorted data."""
    shape = sort.operands[key].shape
    pair = sort.operand_count == 2
    value_type = sort.operands[1 - key].element_type if pair else None
    if not numpy_order:
        return shape.element_type, value_type
    if shape.element_type not in _FLOATS:
        return None
    if not pair:
        return f"u{shape.bit_width}", shape.element_type
    if shape.element_type == "f64" or value_type not in ("s16", "s32"):
        return None
    packed = 32 if shape.bit_width + int(value_type[1:]) <= 32 else 64
    if shape.element_count * (shape.bit_width + packed) // 8 >= _MOST_PACKED_BYTES:
        return None
    return f"u{shape.bit_width}", f"u{packed}"


def _parameter(x: Instruction) -> int | None:
    return x.parameter_number if x.is_parameter else None


def _canonical_parameter(x: Instruction) -> int | None:
    """The parameter of which `x` is the value, every zero made 0 and every NaN the same."""
    if x.opcode != "select" or x.operands[2].opcode != "select":
        return None
    is_nan, nan, zeroed = x.operands
    is_zero, zero, value = zeroed.operands
    if not (_compares(is_nan, "NE", value) and is_nan.second is value):
        return None
    if not _compares(is_zero, "EQ", value) or scalar_of(is_zero.second) != 0 or scalar_of(zero) != 0:
        return None
    if not nan.is_constant or (number := scalar_of(nan)) is None or number == number:
        return None
    return _parameter(value)


def _compares(x: Instruction, direction: str, first: Instruction) -> bool:
    return x.opcode == "compare" and x.raw("direction") == direction and x.operand is first


def _constant(source: Instruction, shape: Shape, text: str) -> Instruction:
    one = derived(source, "constant", Shape(shape.element_type), [])
    one.payload = text
    return derived(source, "broadcast", shape, [one], dimensions="{}")


def radix_keys(operand: Instruction, key_type: str) -> Instruction:
    """Equal zeros and equal NaNs, then all bits of negative numbers turned and the sign of the others."""
    shape, make = operand.shape, partial(derived, operand)
    keys, preds = shape.with_element_type(key_type), shape.with_element_type("pred")
    zero = _constant(operand, shape, "0")
    is_zero = make("compare", preds, [operand, zero], direction="EQ")
    zeroed = make("select", shape, [is_zero, zero, operand])
    nan = _constant(operand, shape, "nan")
    is_nan = make("compare", preds, [operand, operand], direction="NE")
    canonical = make("select", shape, [is_nan, nan, zeroed])
    is_negative = make("compare", preds, [canonical, zero], direction="LT")
    bits = make("bitcast-convert", keys, [canonical])
    sign = _constant(operand, keys, str(1 << (shape.bit_width - 1)))
    of_others = make("xor", keys, [sign, bits])
    of_negatives = make("not", keys, [bits])
    return make("select", keys, [is_negative, of_negatives, of_others])


def packed_pairs(
    sort: Instruction, keys: Instruction, values: Instruction, by: Comparator
) -> Sequence[Instruction]:
    """The keys to sort by, and each key and value side by side in one number."""
    make = partial(derived, sort)
    keys_ = radix_keys(keys, by.key_type)
    packed = keys_.shape.with_element_type(str(by.value_type))
    raw_shape = values.shape.with_element_type(f"u{values.shape.bit_width}")
    raw = make("bitcast-convert", raw_shape, [values])
    if by.descending:
        raw = make("not", raw_shape, [raw])
    raw_keys = make("bitcast-convert", keys.shape.with_element_type(by.key_type), [keys])
    low = make("convert", packed, [raw])
    wide = make("convert", packed, [raw_keys])
    shift = _constant(sort, packed, str(values.shape.bit_width))
    high = make("shift-left", packed, [wide, shift])
    return keys_, make("or", packed, [high, low])


def unpacked_pairs(sort: Instruction, call: Instruction, by: Comparator) -> Instruction:
    make = partial(derived, sort)
    packed = call.shape.tuple_shapes[1]
    key_shape, value_shape = sort.operands[by.key].shape, sort.operands[1 - by.key].shape
    pairs = make("get-tuple-element", packed, [call], index="1")
    shift = _constant(sort, packed, str(value_shape.bit_width))
    high = make("shift-right-logical", packed, [pairs, shift])
    raw_keys = make("convert", packed.with_element_type(by.key_type), [high])
    keys = make("bitcast-convert", key_shape, [raw_keys])
    raw_shape = packed.with_element_type(f"u{value_shape.bit_width}")
    raw = make("convert", raw_shape, [pairs])
    if by.descending:
        raw = make("not", raw_shape, [raw])
    values = make("bitcast-convert", value_shape, [raw])
    elements = [keys, values] if by.key == 0 else [values, keys]
    return make("tuple", Shape.tuple_of([e.shape for e in elements]), elements)


# Where CUB's radix sort is taken to be faster than XLA's own (`ShouldRewriteCompatibleSort` in
# `xla/backends/gpu/transforms/sort_rewriter.cc`).


_MIN_ELEMENTS = 16384  # elements in all, of a device of which nothing is known
_TABLES = packaged(__file__, "sort_rewriter")


def is_faster_by_radix(shape: Shape, pair: bool, device: DeviceDescription) -> bool:
    """True if a radix sort is faster for operands of this shape, sorted along their last dimension."""
    size = shape.dimensions[-1]
    if size == 0:
        return False
    rows = shape.element_count // size
    if device.is_blackwell:
        return _on_blackwell(shape.bit_width, rows, size, device, pair)
    if device.compute_capability[0] == 9:
        return _is_beyond("hopper", shape.bit_width, rows, size, device)
    if device.compute_capability[0] == 8:
        return _is_beyond("ampere", shape.bit_width, rows, size, device)
    return shape.element_count > _MIN_ELEMENTS


def _is_beyond(
    table: str,
    bits: int,
    rows: int,
    size: int,
    device: DeviceDescription,
) -> bool:
    """True beyond the sizes of a table: of one row, between numbers of rows by cores, and from so many on."""
    found = _TABLES[table]
    if bits == 8:
        least, few, most = found["bytes"]
        return rows == 1 or (size > least and (rows > few or size < most))
    of_bits = found.get(str(bits), {"one_row": size, "steps": []})
    if rows == 1 and size > of_bits["one_row"]:
        return True
    least, cores, above = of_bits.get("between", (0, 0, 0))
    is_between = least < rows <= cores * device.core_count and size > above
    return is_between or any(rows > least and size > each for least, each in of_bits["steps"])


def _on_blackwell(
    bits: int,
    rows: int,
    size: int,
    device: DeviceDescription,
    pair: bool,
) -> bool:
    if size <= 1024:
        return False
    if bits == 16:
        return size >= 4096
    if bits == 32:
        if rows == 1:
            return size >= 4096
        for least, each in _TABLES["blackwell"]["32"]["steps"]:
            if size >= each:
                return bool(rows > least)
        return size >= 4096 and 88 < rows < 128
    if bits == 64:
        return not pair and size >= 16384
    return _is_beyond("hopper", bits, rows, size, device)


UNASSIGNED = "xla.gpu.ext.cub_sort_unassigned_scratch_size"
_KEYS = values("bf16 f16 f32 f64 s8 s16 s32 s64 u8 u16 u32 u64")
_KEYS_OF_PAIRS = values("u8 u16 s32 u32 u64 f32")
_VALUE_BITS = (16, 32, 64)


class SortRewriter(Pass):
    """As with a GPU: without one, by tables alone (`xla/backends/gpu/transforms/sort_rewriter.cc`)."""

    device: DeviceDescription
    name = "sort-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        sorts = find_each(module, lambda x: x.opcode == "sort")
        found = [(sort, by) for sort in sorts if (by := self._comparator(sort)) is not None]
        for sort, by in found:
            _rewrite(sort, by)
        return bool(found)

    def _comparator(self, sort: Instruction) -> Comparator | None:
        shape = sort.operand.shape
        if sort.operand_count > 2 or any(o.shape.dynamic_dimensions for o in sort.operands):
            return None
        if sort.dimension != shape.rank - 1:
            return None
        if not is_faster_by_radix(shape, sort.operand_count == 2, self.device):
            return None
        found = comparator_of(sort)
        return found if found is not None and _is_supported_by_cub(found) else None


def _is_supported_by_cub(by: Comparator) -> bool:
    if by.value_type is None:
        return by.key_type in _KEYS
    return by.key_type in _KEYS_OF_PAIRS and Shape(by.value_type).bit_width in _VALUE_BITS


def _rewrite(sort: Instruction, by: Comparator) -> None:
    key = sort.operands[by.key]
    if sort.operand_count == 1:
        operands = [radix_keys(key, by.key_type), key] if by.numpy_order else [key]
    elif by.numpy_order:
        operands = list(packed_pairs(sort, key, sort.operands[1 - by.key], by))
    else:
        operands = [key, sort.operands[1 - by.key]]
    scratch = with_layout("u8", [1], [0])
    call = derived(
        sort,
        "custom-call",
        Shape.tuple_of([*(o.shape for o in operands), scratch]),
        operands,
        custom_call_target=f'"{UNASSIGNED}"',
        backend_config=json.dumps({"descending": True} if by.descending else {}, separators=(",", ":")),
    )
    replaced(sort, _result(sort, call, by))


def _result(sort: Instruction, call: Instruction, by: Comparator) -> Instruction:
    if sort.operand_count == 1:
        if by.numpy_order:
            return derived(sort, "get-tuple-element", sort.shape, [call], index="1")
        return added(sort, "get-tuple-element", sort.shape, [call], index="0")
    if by.numpy_order:
        return unpacked_pairs(sort, call, by)
    elements = [
        derived(sort, "get-tuple-element", o.shape, [call], index=k if by.key == 0 else 1 - k)
        for k, o in enumerate(sort.operands)
    ]
    return derived(sort, "tuple", Shape.tuple_of([e.shape for e in elements]), elements)


class EstimateCubSortScratchSize(ExpandPass):
    """`deviceless-estimate-cub-sort-scratch-size`: calls of CUB's radix sort as XLA:GPU emits them
    (`xla/backends/gpu/transforms/estimate_cub_sort_scratch_size.cc`). CUB needs a second place for keys and
    values, and at most 5% more for large arrays, which depends on the device and is left out."""

    name = "deviceless-estimate-cub-sort-scratch-size"

    def is_wanted(self, x: Instruction) -> bool:
        return custom_call_target(x) == UNASSIGNED

    def handle(self, call: Instruction) -> bool:
        keys = call.operand.shape
        rows = keys.element_count // keys.dimensions[-1]
        descending = "true" if "true" in (call.raw("backend_config") or "") else "false"
        kind = "pairs" if call.operand_count == 2 else "keys"
        results = [o.shape for o in call.operands]
        offsets = 4 * (rows + 1) if rows > 1 else 0
        scratch = with_layout("u8", [sum(s.byte_size for s in results) + offsets], [0])
        new = derived(
            call,
            "custom-call",
            Shape.tuple_of([*results, scratch]),
            call.operands,
            custom_call_target=f'"xla.gpu.ext.cub_sort_{kind}"',
            api_version="API_VERSION_TYPED_FFI",
            backend_config=f"{{descending = {descending}, batch_size = {rows} : i64}}",
        )
        return replaced(call, new)


class SortSimplifier(Pass):
    name = "simplify-sorts"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(map(_without_unread, find_each(module, lambda x: x.opcode == "sort")))


def _without_unread(sort: Instruction) -> bool:
    if not sort.is_tuple or sort.is_root:
        return False
    if any(not user.is_get_tuple_element for user in sort.users):
        return False
    compare = sort.to_apply
    read = {user.tuple_index for user in sort.users}
    read |= {p.parameter_number // 2 for p in compare if p.is_parameter and p.users}
    if len(read) == sort.operand_count or not read:
        return False
    remaining = sorted(read)
    operands = [sort.operands[k] for k in remaining]
    new = sort.clone(operands, shape=Shape.maybe_tuple_of([o.shape for o in operands]))
    clone = clone_computation(compare)
    for parameter in list(clone.parameters):
        operand, side = divmod(parameter.parameter_number, 2)
        if operand in read:
            parameter.payload = str(2 * remaining.index(operand) + side)
        else:
            clone.remove_instruction(parameter)
    clone.parameters[:] = [p for p in clone.parameters if p.computation is clone]
    new.called = [("to_apply", clone)]
    new.attributes = new.attributes.without("to_apply").updated(to_apply=f"%{clone.name}")
    sort.parent.add_instruction(new)
    results = {remaining[0]: new}
    if len(remaining) > 1:
        results = {
            k: added(sort, "get-tuple-element", o.shape, [new], index=place)
            for place, (k, o) in enumerate(zip(remaining, operands, strict=True))
        }
    for user in list(sort.users):
        user.replace_all_uses_with(results[user.tuple_index])
        user.parent.remove_instruction(user)
    return True


class PermutationSortExpander(ExpandPass):
    """The inverse of a permutation from a sort by a scatter
    (`xla/hlo/transforms/expanders/permutation_sort_expander.cc`)."""

    name = "permutation_sort_simplifier"

    def is_wanted(self, x: Instruction) -> bool:
        if x.opcode != "sort" or x.operand_count != 2 or not x.operand.is_get_tuple_element:
            return False
        root, sort = x.to_apply.root, x.operand.operand
        if root.raw("direction") != "LT" or sort.opcode != "sort" or sort.dimension != x.dimension:
            return False
        counter = sort.operands[x.operand.tuple_index]
        is_count = _counts_along(counter, x.dimension) and counter.element_type in INTEGER_TYPES
        return is_count and [o.is_parameter and o.parameter_number for o in root.operands] == [0, 1]

    def handle(self, x: Instruction) -> bool:
        keys, values = x.operands
        rank = keys.rank
        indices = make.resized(x, keys, [*keys.sizes, 1])
        if rank > 1:
            counters = {d: make.iota(x, indices.shape, d) for d in range(rank) if d != x.dimension}
            indices = make.concatenate(x, [counters.get(d, indices) for d in range(rank)], rank)
        every, names = range(rank), ("scalar_lhs", "scalar_rhs")
        scatter = make.add(
            x,
            "scatter",
            values.shape,
            [make.zeros(x, values.shape), indices, values],
            called=make.reducer(x, "update_replace_computation", None, values.element_type, names),
            update_window_dims="{}",
            inserted_window_dims=every,
            scatter_dims_to_operand_dims=every,
            index_vector_dim=rank,
            unique_indices="true",
        )
        return replaced(x, make.tuple_of(x, [make.iota(x, keys.shape, x.dimension), scatter]))


class StableSortExpander(RewritePass):
    """By an operand, maybe new, that counts (`xla/hlo/transforms/expanders/stable_sort_expander.cc`)."""

    name = "stable-sort-expander"
    opcodes = ("sort",)

    def handle(self, sort: Instruction) -> bool:
        return sort.raw("is_stable") == "true" and _expand(sort)


def _expand(sort: Instruction) -> bool:
    dimension = sort.dimension
    counters = (
        k for k, o in enumerate(sort.operands) if _counts_along(o, dimension) and o.element_type == "s32"
    )
    place = next(counters, None)
    compare = sort.to_apply
    if place is not None:
        if len(compare.callers) > 1:
            compare = clone_computation(compare)
            set_called(sort, [("to_apply", compare)])
        sort.attributes = sort.attributes.without("is_stable")
        _break_ties(compare, place)
        return True
    place = sort.operand_count
    compare = _with_parameters(compare, place)
    shape = replace(sort.operand.shape, element_type="s32")
    counter = added(sort, "iota", shape, [], iota_dimension=dimension)
    new = sort.clone([*sort.operands, counter], shape=Shape.tuple_of([*sort.shape.results, shape]))
    new.called = [("to_apply", compare)]
    new.attributes = new.attributes.without("is_stable", "sharding", "to_apply").updated(
        to_apply=f"%{compare.name}"
    )
    sort.parent.add_instruction(new)
    elements = [
        added(sort, "get-tuple-element", o.shape, [new], index=k) for k, o in enumerate(sort.operands)
    ]
    result = elements[0] if len(elements) == 1 else added(sort, "tuple", sort.shape, elements)
    replaced(sort, result)
    _break_ties(compare, place)
    return True


def _counts_along(x: Instruction, dimension: int) -> bool:
    return x.opcode == "iota" and int(x.attributes["iota_dimension"]) == dimension


def _with_parameters(compare: Computation, place: int) -> Computation:
    clone = clone_computation(compare)
    for k, side in enumerate(("lhs", "rhs")):
        parameter = Instruction(f"p.{place}.{side}", Shape("s32"), "parameter", payload=str(2 * place + k))
        clone.add_instruction(parameter)
    return clone


def _break_ties(compare: Computation, place: int) -> None:
    """Let the smaller place be first where the comparison is the same both ways."""
    root = compare.root
    other = {parameter: compare.parameters[k ^ 1] for k, parameter in enumerate(compare.parameters)}
    for i in compare.post_order():
        if i.operands:
            other[i] = compare.add_instruction(i.clone([other.get(o, o) for o in i.operands]))
    same = added(root, "compare", root.shape, [root, other[root]], direction="EQ")
    sides = [compare.parameters[2 * place], compare.parameters[2 * place + 1]]
    tie = added(root, "compare", root.shape, sides, direction="LT")
    compare.root = added(root, "select", root.shape, [same, tie, root])
