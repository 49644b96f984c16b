"""Products that share an operand become one (`xla/hlo/transforms/simplifiers/dot_merger.cc`). `dot(a, b)` and
`dot(a, c)` are slices of `dot(a, concatenate(b, c))`, where neither needs the other. Dimensions of the new
product: of the shared operand as in its source, of the other one batch, free and contracting, the last two
exchanged where the first product has its free dimension last (`MergeCluster`)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Computation, Instruction, InstructionMap, Module, Record, replace
from hlofuse.ir.attributes.window import SliceRange, SliceRanges
from hlofuse.ir.removing import remove_with_unused_operands, set_attribute
from hlofuse.passes.base import ReleasePass, any_change
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.make import added, derived
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder
from .dot_operands import BATCH, CONTRACTING, FREE, DotOperand, dimensions_of, product_sizes
from .shape_tracker import NotTracked, ShapeTracker, zipped


class Usage(Record):
    """A product seen from one of its operands (`DotOperandUsage`)."""

    dot: Instruction
    side: int
    source: Instruction  # The source of the shared operand below reshapes and transposes
    other_source: Instruction
    size: int  # Elements in the free dimensions of the other operand

    @property
    def shared(self) -> Instruction:
        return self.dot.operands[self.side]

    @property
    def other(self) -> Instruction:
        return self.dot.operands[1 - self.side]

    @property
    def shared_dimensions(self) -> DotOperand:
        return DotOperand.of(self.dot, self.side)

    @property
    def other_dimensions(self) -> DotOperand:
        return DotOperand.of(self.dot, 1 - self.side)


def merge(group: Sequence[Usage], on_left: bool) -> tuple[Instruction, list[Instruction]]:
    """The merged product, and for each old one what stands for it. NotTracked where XLA would fail."""
    first = group[0]
    shared_dims = _without_waste(_source_operand(first))
    shared = first.source
    if shared.sizes != shared_dims.sizes:
        shared = added(shared, "reshape", array(shared.element_type, shared_dims.sizes), [shared])
    free_last = first.other_dimensions.categories()[-1:] != (CONTRACTING,)
    others, dims = [], []
    for usage in group:
        tracker, other_dims = _other_operand(usage, shared, shared_dims, free_last)
        dims.append(other_dims)
        others.append(tracker)
    chained = [tracker.chain(usage.other_source) for tracker, usage in zip(others, group, strict=True)]
    place = dims[0].groups[FREE][0]
    sizes = list(dims[0].sizes)
    sizes[place] = sum(d.sizes[place] for d in dims)
    shape = array(chained[0].element_type, sizes)
    whole = derived(shared, "concatenate", shape, chained, dimensions=[place])
    product = _product(shared, whole, shared_dims, DotOperand(tuple(sizes), dims[0].groups), on_left, group)
    results, start = [], 0
    for usage, other, other_dims in zip(group, chained, dims, strict=True):
        size = other_dims.sizes[place]
        cut = product.rank - 1 if on_left else len(shared_dims.groups[BATCH])
        part = _slice(product, cut, start, size)
        start += size
        back = _result(usage, shared, shared_dims, other, other_dims, on_left)
        results.append(back.chain(part))
    return product, results


def _source_operand(usage: Usage) -> DotOperand:
    """The roles of the source's dimensions (`DetermineTargetSharedDims`)."""
    tracker = ShapeTracker.siblings(usage.shared, usage.source)
    dims = usage.shared_dimensions
    batch, contracting = tracker.mapped(dims.groups[BATCH]), tracker.mapped(dims.groups[CONTRACTING])
    if batch is None or contracting is None:
        raise NotTracked
    sizes = tuple(usage.source.sizes)
    free = tuple(d for d in range(len(sizes)) if d not in batch and d not in contracting)
    return DotOperand(sizes, (tuple(batch), free, tuple(contracting)))


def _without_waste(dims: DotOperand) -> DotOperand:
    """No dimension of size 1, and contracting ones in a row are one (`CreateSharedOperand`)."""
    dims = dims.without_ones()
    return dims.collapsed(CONTRACTING) if dims.is_consecutive(CONTRACTING) else dims


def _track_category(
    before: DotOperand, after: DotOperand, tracker: ShapeTracker, category: int
) -> ShapeTracker:
    """The change of dimensions within one category (`BuildIndicesTracker`)."""
    places = after.groups[category]
    out = tracker.narrow(before.groups[category])
    out.reshape([after.sizes[d] for d in sorted(places)])
    out.transpose(inverse(tuple(sorted(range(len(places)), key=lambda k: places[k]))))
    return out


def _other_operand(
    usage: Usage, shared: Instruction, shared_dims: DotOperand, free_last: bool
) -> tuple[ShapeTracker, DotOperand]:
    """From the source of the operand that is not shared to what is concatenated (`TransformConcatDims`)."""
    before, other = usage.shared_dimensions, usage.other_dimensions
    tracker = ShapeTracker.siblings(usage.shared, shared)
    free = ShapeTracker.of(other.group_sizes(FREE))
    free.reshape([usage.size])
    out = zipped(
        [
            _track_category(before, shared_dims, tracker, BATCH),
            free,
            _track_category(before, shared_dims, tracker, CONTRACTING),
        ]
    )
    out.transpose_first([d for group in other.groups for d in group])
    batch, rank = len(shared_dims.groups[BATCH]), len(out.result)
    groups = (tuple(range(batch)), (batch,), tuple(range(batch + 1, rank)))
    dims = DotOperand(out.result, groups)
    if free_last:
        permutation = [*range(batch), *range(batch + 1, rank), batch]
        out.transpose(permutation)
        dims = dims.permuted(permutation)
    whole = ShapeTracker.between(usage.other_source, usage.other)
    whole.extend(out)
    return whole, dims


def _product(
    shared: Instruction,
    other: Instruction,
    shared_dims: DotOperand,
    other_dims: DotOperand,
    on_left: bool,
    group: Sequence[Usage],
) -> Instruction:
    sides = [(shared, shared_dims), (other, other_dims)]
    (left, left_dims), (right, right_dims) = sides if on_left else sides[::-1]
    first = group[0].dot
    shape = array(first.element_type, product_sizes(left_dims, right_dims))
    given = first.attributes.given("operand_precision", "algorithm")
    out = derived(left, "dot", shape, [left, right], **dimensions_of(left_dims, right_dims).raw(), **given)
    if (named := next((usage.dot for usage in group if usage.dot.op_name), None)) is not None:
        set_attribute(out, "metadata", named.raw("metadata") or "{}")
    return out


def _slice(
    product: Instruction,
    dimension: int,
    start: int,
    size: int,
) -> Instruction:
    sizes = list(product.sizes)
    sizes[dimension] = size
    ranges = SliceRanges(
        SliceRange(start, start + size, 1) if d == dimension else SliceRange(0, n, 1)
        for d, n in enumerate(product.sizes)
    )
    return derived(product, "slice", array(product.element_type, sizes), [product], slice=ranges)


def _result(
    usage: Usage,
    shared: Instruction,
    shared_dims: DotOperand,
    other: Instruction,
    other_dims: DotOperand,
    on_left: bool,
) -> ShapeTracker:
    """From a part of the merged product to the old one (`BuildOutputShapeTracker`)."""
    old_shared, old_other = usage.shared_dimensions, usage.other_dimensions
    of_shared = ShapeTracker.siblings(shared, usage.shared)
    of_other = ShapeTracker.siblings(other, usage.other)
    batch = _track_category(shared_dims, old_shared, of_shared, BATCH)
    if batch != _track_category(other_dims, old_other, of_other, BATCH):
        raise NotTracked
    parts = [
        _track_category(shared_dims, old_shared, of_shared, FREE),
        _track_category(other_dims, old_other, of_other, FREE),
    ]
    out = zipped([batch, *(parts if on_left else parts[::-1])])
    if on_left != (usage.side == 0):
        count = len(old_shared.groups[BATCH])
        offset = len((old_shared if on_left else old_other).groups[FREE])
        rank = len(out.result)
        out.transpose([*range(count), *range(count + offset, rank), *range(count, count + offset)])
    return out


_FLOPS_PER_BYTE = 290.0  # done in the time that a byte takes from memory
_MAX_RATIO = 20  # the limit for the ratio of free sizes of merged products
_MIN_SAVINGS = 1e-5
_SHAPES = ("transpose", "reshape")
_ROWS_BY_COLUMNS = DotDimensions(lhs_contracting=(1,), rhs_contracting=(0,))
Key = tuple[int, tuple[int, ...], str, str, str, str, str]


class DotMerger(ReleasePass):
    """`dot-merger`: products whose other operand and result have up to `max_size` bytes."""

    name = "dot-merger"
    max_size: int

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(map(self._merge, module.non_fusion_computations()))

    def _merge(self, computation: Computation) -> bool:
        weighs = self.release.weighs_merged_products
        every = _classes(computation, tracked=weighs)
        classes = {key: usages for key, usages in every.items() if len(usages) > 1}
        if not classes:
            return False
        order = _Order(computation)
        replacements = InstructionMap()
        products = []
        for key in sorted(classes):
            usages = sorted(classes[key], key=lambda usage: (usage.size if weighs else 0, usage.dot.id))
            # By their places: a merged product takes that of the first of its parts.
            pairs = ((usages[i], usages[j]) for i, j in combinations(range(len(usages)), 2))
            left = ((a, b) for a, b in pairs if not {a.dot, b.dot} & replacements.keys())
            while group := (
                self._group([u for u in usages if u.dot not in replacements], order)
                if weighs
                else self._pair(left, order)
            ):
                on_left = 2 * sum(usage.side == 0 for usage in group) >= len(group) + weighs
                product, results = merge(group, on_left)
                replacements.update((u.dot, result) for u, result in zip(group, results, strict=True))
                order.add(product, [usage.dot for usage in group])
                products.append(product)
                if not weighs:  # the merged product is next to be merged with another
                    for i in (product, *product.users):
                        i.shape = replace(i.shape, layout=group[0].dot.shape.layout)
                    shared, other = product.operands if on_left else reversed(product.operands)
                    if group[0].side == group[1].side:
                        other.shape = replace(other.shape, layout=group[0].other.shape.layout)
                    merged = Usage(product, 1 - on_left, shared, other, sum(usage.size for usage in group))
                    parts = {usage.dot for usage in group}
                    usages[next(k for k, usage in enumerate(usages) if usage.dot in parts)] = merged
        replaced = sorted(replacements.items(), key=lambda item: item[0].id)
        for old, new in replaced:
            old.replace_all_uses_with(new)
        for old, _ in replaced:
            if old.computation is not None:
                remove_with_unused_operands(old)
        for product in products if weighs else ():
            for part in list(product.users):
                for user in list(part.users) if part.is_slice else ():
                    _shorten(user)
        return bool(replacements)

    def _group(self, usages: Sequence[Usage], order: "_Order") -> list[Usage]:
        """The first two or more that go together (`FindDotsToMerge`)."""
        if len(usages) < 2:
            return []
        dims, first = usages[0].shared_dimensions, usages[0]
        batch, free, contracting = (dims.total(category) for category in (BATCH, FREE, CONTRACTING))
        shared_bytes = first.shared.byte_size
        bytes_each = batch * (contracting * _size_of(first.other) + free * _size_of(first.dot))
        cost_each = 2.0 * batch * free * contracting / _FLOPS_PER_BYTE + bytes_each
        for k, seed in enumerate(usages):
            group, total = [seed], seed.size
            for usage in usages[k + 1 :]:
                if bytes_each * total > self.max_size or usage.size > seed.size * _MAX_RATIO:
                    break
                if any(order.connected(member.dot, usage.dot) for member in group):
                    continue
                runtime = cost_each * (total + usage.size) + (len(group) + 1) * shared_bytes
                if shared_bytes * len(group) / runtime > _MIN_SAVINGS:
                    group.append(usage)
                    total += usage.size
            if len(group) > 1:
                # What is aligned best stands first.
                return sorted(group, key=lambda u: (-(u.size & -u.size), -u.size, u.dot.id))
        return []

    def _pair(self, pairs: Iterable[tuple[Usage, Usage]], order: "_Order") -> list[Usage]:
        """The first two of which one is small (`MergeDots`)."""
        for a, b in pairs:
            is_small = min(_bytes(a.dot), _bytes(b.dot)) <= self.max_size
            if is_small and _go_together(a, b) and not order.connected(a.dot, b.dot):
                first, second = sorted((a, b), key=lambda usage: usage.side)
                return [replace(usage, source=first.shared) for usage in (first, second)]
        return []


def _go_together(a: Usage, b: Usage) -> bool:
    """True for one operand on one side, else for a matrix and its transpose (`TryMergeOperand`)."""
    dims = DotDimensions.of(a.dot)
    if a.dot.minor_to_major != b.dot.minor_to_major or dims != DotDimensions.of(b.dot):
        return False
    if a.side == b.side:
        joins = a.other.minor_to_major == b.other.minor_to_major and len(a.other_dimensions.groups[FREE]) == 1
        return a.shared is b.shared and joins
    is_transposed = a.shared.past("transpose") is b.shared or b.shared.past("transpose") is a.shared
    return dims == _ROWS_BY_COLUMNS and a.shared.rank == 2 and a.shared is not b.shared and is_transposed


def _bytes(dot: Instruction) -> int:
    return dot.byte_size + sum(operand.byte_size for operand in dot.operands)


def _size_of(instruction: Instruction) -> int:
    return array(instruction.element_type).byte_size


def _classes(computation: Computation, *, tracked: bool) -> dict[Key, list[Usage]]:
    """Products by an operand that they could share; each is in two classes (`BuildEquivalenceClasses`)."""
    classes: dict[Key, list[Usage]] = defaultdict(list)
    for dot in computation:
        if not dot.is_dot or dot.has_control_dependencies:
            continue
        empty = any(0 in i.sizes for i in (dot, *dot.operands))
        # Ahead of DotDecomposer an operand may be a scalar; XLA asks for its last dimension.
        if (
            empty
            or not all(o.sizes for o in dot.operands)
            or any(_of_narrow_type(operand) for operand in dot.operands)
        ):
            continue
        for side in (0, 1):
            shared, other = dot.operands[side], dot.operands[1 - side]
            source, dims = _source(dot, side)
            sources = {source: dims.without_ones().categories()}
            if not tracked:  # XLA has a class for the operand and, below a transpose, for its operand
                sources = dict.fromkeys((shared, shared.past("transpose")), ())
            other_source, other_dims = _source(dot, 1 - side)
            for source, categories in sources.items():
                key = (
                    source.id,
                    categories,
                    shared.element_type,
                    other.element_type,
                    dot.element_type,
                    dot.raw("operand_precision") or "",
                    dot.raw("algorithm") or "",
                )
                size = other_dims.total(FREE)
                classes[key].append(Usage(dot, side, source, other_source if tracked else other, size))
    return classes


def _source(dot: Instruction, side: int) -> tuple[Instruction, DotOperand]:
    """The operand's source while no dimension has two categories (`GetOperandSourceWithCategories`)."""
    current, dims = dot.operands[side], DotOperand.of(dot, side)
    while current.opcode in _SHAPES and (operand_dims := dims.of_operand(current)) is not None:
        current, dims = current.operand, operand_dims
    return current, dims


def _of_narrow_type(instruction: Instruction) -> bool:
    """Made of numbers smaller than a byte (`HasSubByteUpcast`)."""
    while instruction.opcode in (*_SHAPES, "convert"):
        operand = instruction.operand
        narrow = operand.shape.bit_width < 8 and operand.element_type != "pred"
        if instruction.opcode == "convert" and narrow:
            return True
        instruction = operand
    return False


class _Order:
    """The products after each product, a bit for each, merged ones included (`BuildDependencyGraph`)."""

    def __init__(self, computation: Computation) -> None:
        self._bits = dict[Instruction, int]()
        self._after = dict[Instruction, int]()
        found = dict[Instruction, int]()
        for x in reversed(computation.post_order()):
            found[x] = 0
            for user in x.successors:
                found[x] |= found[user] | self._bits.get(user, 0)
            if x.is_dot:
                self._bits[x], self._after[x] = 1 << len(self._bits), found[x]

    def connected(self, a: Instruction, b: Instruction) -> bool:
        """A product of an array and itself is so with itself."""
        return a is b or bool(self._after[a] & self._bits[b] or self._after[b] & self._bits[a])

    def add(self, product: Instruction, parts: Sequence[Instruction]) -> None:
        """Insert `product` between its parts and their users (`UpdateGraphForMergedDot`)."""
        merged = later = 0
        for part in parts:
            merged |= self._bits[part]
            later |= self._after[part]
        own = 1 << len(self._bits)
        for x, after in self._after.items():
            if merged & (after | self._bits[x]):
                self._after[x] = after | own | later
        self._bits[product], self._after[product] = own, later


def _shorten(start: Instruction) -> None:
    """Make the reshapes and transposes from `start` on as few as may be (`SimplifyConsumerChain`)."""
    if start.operand_count != 1:
        return
    producer = start.operand
    tracker = ShapeTracker.of(producer.sizes)
    chain = []
    current = start
    while current.opcode in _SHAPES and not current.has_control_dependencies:
        tracker.append(current)
        chain.append(current)
        if current.user_count != 1:
            break
        current = current.user
    if not chain:
        return
    chain[-1].replace_all_uses_with(tracker.chain(producer))
    for instruction in reversed(chain):
        instruction.parent.remove_instruction(instruction)
