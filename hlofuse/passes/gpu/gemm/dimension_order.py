"""The memory of an array, split by dimensions of a dot's operand or result. Mirrors `DimensionOrder`
(`xla/service/gpu/triton_tiling_propagation.cc`). None is XLA's refusal."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Instruction, Shape, replace
from hlofuse.passes.common.shapes import permute

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
            joined += target.shape.dimensions[hlo.dimensions[0]]
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
            if negative and p != target.shape.minor_to_major[-1]:
                return None
        return inside
    if opcode == "broadcast":
        return [logical[d] for d in hlo.dimensions]
    if opcode == "concatenate":
        d = hlo.dimensions[0]
        if len(logical[d]) != 1 or logical[d][0].is_sliced:
            return None
        size = target.shape.dimensions[d]
        fragment = Fragment(logical[d][0].dimension, size, -joined, size)
        # The piece stands for the whole dimension, so that it is found again.
        return [[fragment] if k == d else fragments for k, fragments in enumerate(logical)]
    if opcode == "slice":
        for d, taken in enumerate(hlo.attributes["slice"]):
            if taken.limit - taken.start != target.shape.dimensions[d]:
                if len(logical[d]) > 1:
                    return None
                fragment = logical[d][0]
                fragment.count = target.shape.dimensions[d]
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
    for d in target.shape.minor_to_major:
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
                if hlo.opcode == "broadcast" and f.count > 1 and d in present:
                    return None
                continue
            result.of_dimension.setdefault(d, []).append(at)
    return result


def concatenates_free_dimension(hlo: Instruction, source: DimensionOrder, free: int) -> bool:
    """True for one along the free dimension, of different parts that are multiples of the smallest tile."""
    if len(source.of_dimension.get(free, ())) > 1:
        return False
    at = hlo.dimensions[0]
    if _labelled_index(hlo.shape, source, free) != at:
        return False
    aligned = all(o.shape.dimensions[at] % _CONCATENATE_ALIGNMENT == 0 for o in hlo.operands)
    return aligned and len(set(hlo.operands)) == len(hlo.operands)


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
