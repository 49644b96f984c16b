"""Operations that a GEMM fusion can include, and the profit of it, by the memory of an array, split by
dimensions of a dot's operand or result. Mirrors `DimensionOrder`
(`xla/service/gpu/triton_tiling_propagation.cc`). None is XLA's refusal."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.shapes import inverse, reshape_is_bitcast
from hlofuse.ir import INTEGER_TYPES, Instruction, Record, Shape, replace, values
from hlofuse.passes.common.shapes import permute
from hlofuse.releases import Release

_FLOATS = values("f32 bf16 f16 f64")
_FUNCTIONS = values("""
    acos acosh asin asinh atanh cbrt ceil cosine cosh erf exponential exponential-minus-one floor log
    log-plus-one round-nearest-even rsqrt sine sinh sqrt tan tanh
    """)
_MOVES = values("transpose slice reshape pad concatenate parameter broadcast")


def is_elementwise_for_triton(opcode: str, operand_type: str) -> bool:
    """`IsTritonSupportedElementwiseUpToFloatNormalization` (`support_legacy.cc`)."""
    if opcode in ("convert", "select", "clamp"):
        return True
    if operand_type == "pred":
        return opcode in ("not", "and", "or", "xor", "compare")
    if opcode in ("abs", "negate", "add", "compare", "maximum", "minimum", "multiply", "subtract"):
        return True
    if operand_type not in _FLOATS:
        return False
    return (
        opcode in _FUNCTIONS or opcode in ("atan2", "power") or (opcode == "divide" and operand_type != "f16")
    )


def is_supported(hlo: Instruction, device: DeviceDescription) -> bool:
    """`IsTritonSupportedInstruction`, dots and tuples aside."""
    if is_elementwise(hlo):
        types = [hlo.element_type]
        types += [
            o.element_type for o in hlo.operands if not (hlo.opcode == "convert" and o.element_type == "s4")
        ]
        if not all(_is_data_type(t, device) for t in types):
            return False
        if hlo.is_constant:
            return True
        return bool(hlo.operands) and is_elementwise_for_triton(hlo.opcode, hlo.operand.element_type)
    if hlo.is_bitcast:
        return hlo.element_type == hlo.operand.element_type
    return hlo.opcode in _MOVES


def can_handle_gemm(dot: Instruction, device: DeviceDescription) -> bool:
    """Precision and types (`CanTritonHandleGEMM`)."""
    algorithm = dot.raw("algorithm")
    if algorithm is None:
        if any(p != "default" for p in dot.attributes.get("operand_precision", ())):
            return False
    elif algorithm not in _ALGORITHMS:
        return False
    result = dot.element_type
    left, right = (o.element_type for o in dot.operands)
    if result in ("pred", "s8", "s16") or not _is_data_type(result, device):
        return False
    if result == "s32" and device.compute_capability[0] < 8:
        return False
    if left != right and not (left.startswith("f8") and right.startswith("f8")):
        return False
    if not _is_data_type(left, device) or not _is_data_type(right, device):
        return False
    if result == "s32" and left != "s8":
        return False
    return (left in INTEGER_TYPES) == (result in INTEGER_TYPES)


_ALGORITHMS = values("""
    dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 dot_f32_f32_f32 dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3
    dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9
    """)


def _is_data_type(element_type: str, device: DeviceDescription) -> bool:
    if element_type in ("f16", "f32", "bf16", "pred", "s8", "s16", "s32"):
        return True
    if element_type == "f8e5m2":
        return device.compute_capability[0] >= 8
    return element_type == "f8e4m3fn" and device.compute_capability[0] >= 9


_LONGEST_SLICED = 1024  # elements that a product sums up
_TOLERANCE = 1024  # bytes by which a fusion's traffic may grow


def is_worth_as_input(hlo: Instruction, side: "DotProperties | None" = None) -> bool:
    """`IsInputWorthFusing`; for an operand of any product without `side`."""
    growth = _input_minus_output(hlo)
    if growth is None:
        return False
    if growth <= _TOLERANCE:
        return True
    if hlo.user_count > 1:
        return False
    if hlo.is_slice:
        if all(o.opcode in ("parameter", "constant") for o in hlo.operands):
            return True
        if _is_worth_slicing(hlo, side):
            return True
    if hlo.opcode == "multiply":
        return False
    return all(o.opcode in ("parameter", "constant") and o.user_count <= 1 for o in hlo.operands)


def _is_worth_slicing(hlo: Instruction, side: "DotProperties | None") -> bool:
    """True if what is sliced has other users, too, for which it is computed anyhow."""
    operand = hlo.operand
    if side is None or side.release.products_take_cheap_slices:
        while operand.opcode in ("bitcast", "transpose", "reshape") and operand.user_count == 1:
            operand = operand.operand
        pays = _is_cheap_to_repeat(operand)
    else:
        pays = side.release.products_take_slices and side.contracted <= _LONGEST_SLICED
    same = all(u.is_slice and u.sizes == hlo.sizes for u in operand.users)
    return operand.user_count > 1 and not same and pays


def is_worth_as_output(hlo: Instruction) -> bool:
    """`IsOutputWorthFusing`."""
    growth = _input_minus_output(hlo)
    if growth is None:
        return False
    reader = hlo.user if hlo.user_count == 1 else hlo
    if hlo.is_root or (reader.is_root and reader.opcode == "tuple"):
        return True
    return growth >= -_TOLERANCE


def _input_minus_output(hlo: Instruction) -> int | None:
    if hlo.is_tuple or any(o.is_tuple for o in hlo.operands):
        return None
    return sum(o.byte_size for o in hlo.operands) - hlo.byte_size


def _is_cheap_to_repeat(operand: Instruction) -> bool:
    if operand.opcode in ("parameter", "constant") or is_elementwise(operand):
        return True
    return all(u.is_slice for u in operand.users)


_NEVER = values("tuple get-tuple-element reduce all-reduce all-reduce-start all-reduce-done pad")


class DotProperties(Record):
    """A value of a dot that a fusion grows from (`DotProperties`, `triton_tiling_propagation.cc`)."""

    device: DeviceDescription
    release: Release
    contracted: int  # The number of elements that are summed up
    free: int  # The dimension that is neither batch nor contracted; -1 for the result
    splittable: int  # The dimension that may be split once; -1 for none


NO_SPLIT = 1
_CONCATENATE_ALIGNMENT = 64


class Fragment(Struct):
    dimension: int
    count: int
    start: int = 0
    sliced: int = -1

    def __post_init__(self) -> None:
        if self.sliced < 0:
            self.sliced = self.count

    @property
    def is_sliced(self) -> bool:
        return self.count != self.sliced


class DimensionOrder(Struct):
    """Fragments from minor to major, and for each dimension the numbers of its own, in its logical order."""

    fragments: list[Fragment] = []
    of_dimension: dict[int, list[int]] = {}

    @classmethod
    def of(cls, shape: Shape) -> "DimensionOrder":
        """`FromDotOperandOrOutput`."""
        order = shape.minor_to_major
        fragments = [Fragment(d, shape.dimensions[d]) for d in order]
        return cls(fragments, {d: [k] for k, d in enumerate(order)})

    def key(self) -> object:
        """Equal keys: the same iteration over memory (`ToTensorIterationSpec`)."""
        specs = dict[int, list[list[object]]]()
        stride, last = 1, -1
        for f in self.fragments:
            spec = specs.setdefault(f.dimension, [])
            if last == f.dimension:
                parts = spec[-1][4]
                assert isinstance(parts, list)
                if parts and parts[-1] == 1:
                    parts.pop()
                if f.count > 1:
                    size = spec[-1][1]
                    assert isinstance(size, int)
                    spec[-1][1:4] = [size * f.count, f.start * size, f.sliced * size]
                    parts.append(f.sliced)
            else:
                spec.append([stride, f.count, f.start, f.sliced, [f.sliced]])
            stride *= f.count
            last = f.dimension
        found = []
        for d, spec in specs.items():
            remaining = [s for s in spec if s[1] != 1] if len(spec) > 1 else spec
            if remaining:
                found.append((d, tuple((*s[:4], tuple(s[4])) for s in remaining)))  # type: ignore[arg-type]
        return tuple(sorted(found))


Orders = dict[Instruction, DimensionOrder]


def through_bitcast(target: Instruction, source: DimensionOrder) -> Orders | None:
    """The order on the other side of a bitcast, `target` (`GetPropagatedDimOrdersForBitcast`)."""
    shape = target.shape
    sizes = permute(shape.dimensions, shape.minor_to_major)
    result = DimensionOrder()
    orders: list[list[int]] = [[] for _ in source.fragments]
    left, at = 1, 0
    for number, f in enumerate(source.fragments):
        if left >= f.count:
            if left % f.count:
                return None
            orders[number].append(len(result.fragments))
            result.fragments.append(replace(f))
            left //= f.count
            continue
        remaining, minor = f.count, 1
        while remaining > 1:
            if left > 1:
                size, left = left, 1
                if remaining % size:
                    return None
            else:
                if at >= len(sizes):
                    return None
                size, at = sizes[at], at + 1
                if size > remaining:
                    if size % remaining:
                        return None
                    size, left = remaining, size // remaining
            if f.start % minor or f.sliced % minor:
                return None
            remaining //= size
            orders[number].append(len(result.fragments))
            fragment = Fragment(f.dimension, size)
            if remaining == 1:
                fragment.start, fragment.sliced = f.start // minor, f.sliced // minor
            result.fragments.append(fragment)
            minor *= size
    if left != 1 or any(size != 1 for size in sizes[at:]):
        return None
    for _ in sizes[at:]:
        if result.fragments:
            orders[-1].append(len(result.fragments))
            result.fragments.append(Fragment(result.fragments[-1].dimension, 1))
    for d, sequence in source.of_dimension.items():
        result.of_dimension[d] = [k for number in sequence for k in orders[number]]
    return {target: result}


def through_altering(
    hlo: Instruction,
    source: DimensionOrder,
    *,
    to_operands: bool,
) -> Orders | None:
    """Through what moves dimensions or makes them longer (`GetPropagatedDimOrdersForDimAlteringOp`)."""
    opcode = hlo.opcode
    if opcode == "slice" and hlo.shape.is_effective_scalar:
        return None
    given = hlo if to_operands else hlo.operand
    fragments = [replace(f) for f in source.fragments]
    logical = _by_dimension(given.shape, fragments)
    if logical is None:
        return None
    found: Orders = {}
    joined = 0
    for target in hlo.operands if to_operands else [hlo]:
        inside = _inside(hlo, target, logical, joined, to_operands)
        if inside is None:
            return None
        if opcode == "concatenate":
            joined += target.sizes[hlo.dimension]
        order = _laid_out(hlo, target, inside, fragments, source)
        if order is None:
            return None
        found.setdefault(target, order)
    return found


def _by_dimension(shape: Shape, fragments: Sequence[Fragment]) -> list[list[Fragment]] | None:
    if len(fragments) < shape.rank:
        return None
    logical: list[list[Fragment]] = [[] for _ in range(shape.rank)]
    at = 0
    for d in shape.minor_to_major:
        size = 1
        while True:
            if at >= len(fragments):
                return None
            size *= fragments[at].count
            logical[d].append(fragments[at])
            at += 1
            if size >= shape.dimensions[d]:
                break
        if size != shape.dimensions[d]:
            return None
    return logical


def _inside(
    hlo: Instruction, target: Instruction, logical: list[list[Fragment]], joined: int, to_operands: bool
) -> list[list[Fragment]] | None:
    opcode = hlo.opcode
    if opcode == "transpose":
        permutation = tuple(hlo.dimensions) if to_operands else inverse(hlo.dimensions)
        inside: list[list[Fragment]] = [[] for _ in permutation]
        for k, p in enumerate(permutation):
            inside[p] = logical[k]
            negative = to_operands and logical[k] and logical[k][0].start < 0
            if negative and p != target.minor_to_major[-1]:
                return None
        return inside
    if opcode == "broadcast":
        return [logical[d] for d in hlo.dimensions]
    if opcode == "concatenate":
        d = hlo.dimension
        if len(logical[d]) != 1 or logical[d][0].is_sliced:
            return None
        size = target.sizes[d]
        fragment = Fragment(logical[d][0].dimension, size, -joined, size)
        # The piece stands for the whole dimension, so that it is found again.
        return [[fragment] if k == d else fragments for k, fragments in enumerate(logical)]
    if opcode == "slice":
        for d, taken in enumerate(hlo.attributes["slice"]):
            if taken.limit - taken.start != target.sizes[d]:
                if len(logical[d]) > 1:
                    return None
                fragment = logical[d][0]
                fragment.count = target.sizes[d]
                fragment.start += taken.start
        return logical
    return logical if opcode == "copy" else None


def _laid_out(
    hlo: Instruction,
    target: Instruction,
    inside: list[list[Fragment]],
    fragments: list[Fragment],
    source: DimensionOrder,
) -> DimensionOrder | None:
    result = DimensionOrder()
    number_of = {}
    present = set()
    for d in target.minor_to_major:
        for f in inside[d]:
            number_of[id(f)] = len(result.fragments)
            result.fragments.append(replace(f))
            if f.count > 1:
                present.add(f.dimension)
    for d, sequence in source.of_dimension.items():
        for number in sequence:
            f = fragments[number]
            at = number_of.get(id(f))
            if at is None:
                if hlo.is_broadcast and f.count > 1 and d in present:
                    return None
                continue
            result.of_dimension.setdefault(d, []).append(at)
    return result


def concatenates_free_dimension(hlo: Instruction, source: DimensionOrder, free: int) -> bool:
    """True for one along the free dimension, of different parts that are multiples of the smallest tile."""
    if len(source.of_dimension.get(free, ())) > 1:
        return False
    at = hlo.dimension
    if _labelled_index(hlo.shape, source, free) != at:
        return False
    aligned = all(o.sizes[at] % _CONCATENATE_ALIGNMENT == 0 for o in hlo.operands)
    return aligned and len(set(hlo.operands)) == hlo.operand_count


def _labelled_index(shape: Shape, order: DimensionOrder, label: int) -> int | None:
    """`LogicalIndexOfLabeledDimension`."""
    at = 0
    for d in shape.minor_to_major:
        size = 1
        while size < shape.dimensions[d]:
            size *= order.fragments[at].count
            if order.fragments[at].dimension == label:
                return d
            at += 1
    return None


def split_required(order: DimensionOrder, splittable: int) -> int | None:
    """The required split, or `NO_SPLIT`; None if unsupported (`GetRequirementsIfSupportedOrder`)."""
    fragments = order.fragments
    for minor, major in pairwise(fragments):
        if minor.dimension == major.dimension and minor.is_sliced:
            return None
    major_part = NO_SPLIT
    for d, sequence in order.of_dimension.items():
        groups, last, k = 0, -1, 0
        while k < len(sequence):
            size = fragments[sequence[k]].count
            while k + 1 < len(sequence) and sequence[k + 1] == sequence[k] + 1:
                k += 1
                size *= fragments[sequence[k]].count
            if size == 1:
                k += 1
                continue
            if last > sequence[k]:
                return None
            groups += 1
            if groups > 1:
                if d != splittable or groups > 2 or major_part not in (NO_SPLIT, size):
                    return None
                major_part = size
            last = sequence[k]
            k += 1
    return major_part


def combined(a: int | None, b: int | None) -> int | None:
    """`CombineDotRequirements`; None where a requirement is."""
    if a == b or b == NO_SPLIT:
        return a
    return b if a == NO_SPLIT else None


def carried(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, *, to_operands: bool
) -> tuple[Orders, int] | None:
    """The orders beyond `hlo` and the split they need (`GetPropagatedDimOrdersAndRequirements`)."""
    orders = _orders(hlo, source, side, to_operands)
    if orders is None:
        return None
    needed: int | None = NO_SPLIT
    for place in (*hlo.operands, hlo):
        if place in orders:
            needed = combined(needed, split_required(orders[place], side.splittable))
            if needed is None:
                return None
    assert needed is not None
    return orders, needed


def carried_if_worth(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, *, operand: int | None = None
) -> tuple[Orders, int] | None:
    """If it pays, also from `operand` on (`GetPropagatedDimOrdersAndRequirementsIfProfitablyFusible`)."""
    repeated = hlo.opcode == "power" and hlo.user_count > 1 and not side.release.products_repeat_powers
    if hlo.opcode in _NEVER or repeated:
        return None
    if not is_supported(hlo, side.device):
        return None
    found = carried(hlo, source, side, to_operands=operand is None)
    if found is None:
        return None
    if operand is None:
        return found if _has_small_operand(hlo, found[0], side) or is_worth_as_input(hlo, side) else None
    for number, other in enumerate(hlo.operands):
        if number != operand and not _is_small_input(other):
            return None
    return found if is_worth_as_output(hlo) else None


def _has_small_operand(hlo: Instruction, orders: Orders, side: DotProperties) -> bool:
    """A binary operation on something spread that can be fused, too."""
    if not is_elementwise(hlo) or hlo.operand_count != 2:
        return False
    return any(
        o.is_broadcast
        and o.operand.opcode in ("parameter", "constant")
        and carried_if_worth(o, orders[o], side) is not None
        for o in hlo.operands
    )


def _is_small_input(operand: Instruction) -> bool:
    if operand.is_broadcast:
        source = operand.operand
        if (source.is_array and not source.rank) or _is_effective_parameter(source):
            return True
    return _is_effective_parameter(operand)


def _is_effective_parameter(hlo: Instruction) -> bool:
    return hlo.through("bitcast", "get-tuple-element").is_parameter


def _orders(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, to_operands: bool
) -> Orders | None:
    """`GetPropagatedDimOrders`."""
    opcode = hlo.opcode
    readers = (
        ("dynamic-slice",) if side.release.products_enter_concatenates else ("dynamic-slice", "concatenate")
    )
    if opcode != "parameter" and to_operands and any(u.opcode in readers for u in hlo.users):
        return None
    if opcode == "parameter" or (opcode == "constant" and not hlo.rank):
        return {}
    if opcode in ("transpose", "copy"):
        return through_altering(hlo, source, to_operands=to_operands)
    if opcode in ("broadcast", "slice"):
        return through_altering(hlo, source, to_operands=True) if to_operands else None
    if hlo.operands and is_elementwise_for_triton(opcode, hlo.operand.element_type):
        return dict.fromkeys(hlo.operands, source) if to_operands else {hlo: source}
    if opcode == "reshape" and not reshape_is_bitcast(hlo.operand.shape, hlo.shape):
        return None
    if opcode in ("bitcast", "reshape"):
        return through_bitcast(hlo.operand if to_operands else hlo, source)
    if opcode == "concatenate" and to_operands and concatenates_free_dimension(hlo, source, side.free):
        return through_altering(hlo, source, to_operands=True)
    return None


def added_parameters(hlo: Instruction) -> int:
    """`NumAddedParameters`."""
    if hlo.is_parameter or (hlo.is_constant and hlo.rank):
        return 0
    return hlo.operand_count - 1
