"""Products, sums, sorts and scatters before optimizations, written in another way with the same values."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import pairwise, product
from math import prod

import numpy as np

from hlofuse.analysis.components import depends_on
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import Instruction, Record, computation_of, grouped, module_of, reach
from hlofuse.ir.attributes.window import SliceRange, SliceRanges, Window, WindowDimension
from hlofuse.ir.shape import FLOATING_TYPES, Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, dot_like
from hlofuse.passes.common.elementwise import CannotEvaluate
from hlofuse.passes.common.evaluation import elements
from hlofuse.passes.common.index_vectors import counted_loop
from hlofuse.passes.common.literals import Elements, bounds, scalar_of
from hlofuse.passes.common.shapes import (
    array,
    labels_of,
    numbers_of,
    ranges_of,
    window_of,
    with_dimensions,
    without,
    without_ones,
)
from .batching import row_starts
from .contracting import (
    Labelled,
    View,
    as_sum,
    contracted,
    diagonal_alone,
    labelled,
    multiply_apart,
    multiply_unrepeated,
    on_both,
    over,
    product_of_sums,
    sizes_of,
    spread_factor,
    summed,
    terms_of,
)
from .matching import MIN_BYTES, MIN_ELEMENTS, combines_by, has, is_constant, only_reader, origins, source
from .structure import as_slices, scale_each, small_first
from .updates import add_to_rows, choose_written
from .written import (
    MOST_EVALUATED,
    Numbers,
    Rewriting,
    counted,
    fold,
    gather_rows,
    indexed,
    numbers,
    onehot,
    replace,
    row_written,
    spread,
    written_before,
)


def _leaves_out(indices: Instruction, classes: int) -> bool:
    """True for indices that a formula writes, of which one is no class: its row is 0."""
    with suppress(CannotEvaluate):
        found = elements(indices, {}, MOST_EVALUATED)
        return bool(((found < 0) | (found >= classes)).any())
    return False


def _at_indices(x: Instruction, factors: Sequence[Labelled], result: list[int]) -> bool:
    """Σ of a one-hot array times another becomes what that has at the indices, or sums for each index."""
    for (hot, labels), (value, own) in (factors, factors[::-1]):
        found = onehot(hot)
        if found is None or _leaves_out(found[0], hot.shape.dimensions[found[1]]):
            continue
        (indices, along), sizes = found, sizes_of((hot, labels), (value, own))
        number = labels[along]
        places = [d for k, d in enumerate(labels) if k != along]
        if number not in result and number in own:
            first = [d for d in places if d in own]
            order = first + [d for d in places if d not in own]
            indices = make.transpose(x, indices, list(map(places.index, order)))
            rows = gather_rows(x, value, indices, own.index(number), list(map(own.index, first)))
            new = rows, order + [d for d in own if d != number and d not in first]
        elif number in result and number not in own:
            value, own = summed(x, (value, own), [d for d in own if d not in result and d not in places])
            order = [d for d in places if d in result] + [d for d in places if d not in result]
            indices = make.transpose(x, indices, list(map(places.index, order)))
            rest = [d for d in own if d not in places]
            batch = sum(d in result for d in places)
            rows = over(x, (value, own), order + rest, sizes)
            new = _sums_at(x, indices, rows, sizes[number], batch), [*order[:batch], number, *rest]
        else:
            continue
        rest = [d for d in new[1] if d not in result]
        return replace(x, over(x, summed(x, new, rest), result, sizes))
    return False


def _sums_at(
    x: Instruction,
    indices: Instruction,
    rows: Instruction,
    count: int,
    batch: int,
) -> Instruction:
    """Sums of rows by index, apart for each place of the first `batch` dimensions of the indices."""
    rank = indices.shape.rank
    kind = rows.element_type
    shape = array(kind, [*indices.shape.dimensions[:batch], count, *rows.shape.dimensions[rank:]])
    return indexed(
        x,
        "scatter",
        [make.zeros(x, shape), indices, rows],
        shape,
        rank,
        [("to_apply", make.reducer(x, "sum", "add", kind))],
        inserted_window_dims=[batch],
        scatter_dims_to_operand_dims=[batch],
        update_window_dims=range(rank, rows.shape.rank),
        input_batching_dims=range(batch),
        scatter_indices_batching_dims=range(batch),
    )


def _take(x: Instruction, is_product: bool = False) -> bool:
    """A product with a one-hot array, or a sum of it (`is_product`: times values), becomes rows, or sums."""
    if x.opcode == "dot":
        return _at_indices(x, labelled(x), [*range(x.shape.rank)])
    value = x.operands[0]
    labels = [*range(value.shape.rank)]
    if not combines_by(x, "add") or not is_constant(x.operands[1], 0):
        return False
    factors = [(value, labels), (make.scalar(x, x.element_type, 1), list[int]())]
    is_masked = value.opcode == "select" and is_constant(value.operands[2], 0)
    is_weighted = is_masked or value.opcode == "multiply"
    if is_product and (not is_weighted or any(map(is_constant, value.operands[:2]))):
        return False
    if is_product:
        factors = [(o, labels) for o in value.operands[:2]]
    elif is_weighted and min(len(spread_factor(o)[1]) for o in value.operands[:2]) < len(labels):
        factors = [spread_factor(o) for o in value.operands[:2]]
    return _at_indices(x, factors, [d for d in labels if d not in x.dimensions])


class _Places(Record):
    """A gather reads at these places along one dimension; along others it reads all."""

    along: int
    indices: Instruction
    """Dimensions of the batch first."""
    batch: dict[int, int]
    """Dimensions of the array that the indices count, with those of the result, as for `x[arange(n), i]`."""
    free: list[int]
    """The other dimensions of the result that the indices have."""


def _places(x: Instruction) -> _Places | None:
    table, indices = x.operands
    names = ("start_index_map", "slice_sizes", "offset_dims", "operand_batching_dims")
    columns, sizes, offsets, batched = (numbers_of(x, n) for n in names)
    vector = int(x.raw("index_vector_dim") or 0)
    own = [d for d in range(x.shape.rank) if d not in offsets]
    firsts = numbers_of(x, "start_indices_batching_dims")
    batch = {d: own[n - (n > vector)] for d, n in zip(batched, firsts, strict=True)}
    kind = array(indices.element_type, [x.shape.dimensions[d] for d in own])
    found = list[tuple[int, Instruction]]()
    for k, d in enumerate(columns):
        size = table.shape.dimensions[d]
        if sizes[d] == size:
            continue  # it begins at 0
        is_one = sizes[d] == 1 and indices.opcode == "concatenate" and len(indices.operands) == len(columns)
        column = indices.operands[k] if is_one else indices
        if column is indices and vector < indices.shape.rank:
            column = make.part(x, indices, k, k + 1, vector)
        counts = _counted_dimension(column, kind.dimensions)
        if counts is not None and size == kind.dimensions[counts]:
            batch[d] = own[counts]
        else:
            found.append((d, make.reshape(x, kind, column)))
    partial_dims = [d for d, n in enumerate(table.shape.dimensions) if sizes[d] != n and d not in batch]
    if len(found) != 1 or partial_dims != [found[0][0]] or sizes[partial_dims[0]] != 1:
        return None
    free = [d for d in own if d not in batch.values()]
    order = [own.index(d) for d in (*batch.values(), *free)]
    return _Places(found[0][0], make.transpose(x, found[0][1], order), batch, free)


def _counted_dimension(x: Instruction, sizes: Sequence[int]) -> int | None:
    """The dimension of which each element of `x`, in these sizes, is the number."""
    with suppress(CannotEvaluate):
        values = elements(x, {}, MOST_EVALUATED).reshape(sizes)
        for d, size in enumerate(sizes):
            if (np.moveaxis(values, d, -1) == np.arange(size)).all():
                return d
    return None


def _one_slice(x: Instruction) -> _Places | None:
    """The places of a slice of one dimension."""
    whole, *starts = x.operands
    along = [d for d, n in enumerate(x.shape.dimensions) if n != whole.shape.dimensions[d]]
    if len(along) != 1:
        return None
    indices = make.iota(x, array("s32", [x.shape.dimensions[along[0]]]), 0)
    first = None if starts else ranges_of(x)[along[0]]
    if first is not None:
        indices = make.binary(x, "multiply", indices, make.scalar_like(indices, first.stride))
    start = make.scalar(x, "s32", first.start) if first else make.convert(x, starts[along[0]], "s32")
    indices = make.binary(x, "add", indices, make.broadcast(x, indices.shape, start, ()))
    return _Places(along[0], indices, {}, along)


def _take_first(x: Instruction) -> bool:
    """Rows of what was computed become what is computed of rows."""
    whole = x.operands[0]
    places = _places(x) if x.opcode == "gather" else _one_slice(x)
    if places is None or len(whole.users) > 1:
        return False
    along, batch = places.along, list(places.batch)
    rows = prod(x.shape.dimensions[d] for d in places.free)
    if rows * 4 > whole.shape.dimensions[along]:
        return False
    counts = [whole.shape.dimensions[d] for d in batch]
    indices = make.reshape(x, array(places.indices.element_type, [*counts, rows]), places.indices)

    def last(value: Instruction, labels: list[int]) -> Labelled | None:
        if not {*batch} <= {*labels}:  # each place of the batch reads others
            return None
        found = gather_rows(x, value, indices, labels.index(along), [labels.index(d) for d in batch])
        first = [*batch, along]
        return found, [*first, *(d for d in labels if d not in first)]

    view = View({along: rows}, last)
    labels = [*range(whole.shape.rank)]
    found = view.of(whole, labels)
    if found is None or not any(i.opcode == "dot" for i, _ in view.done):
        return False
    rest = [d for d in labels if d != along and d not in batch]
    order = [*batch, along, *rest]
    new = over(whole, found, order, sizes_of((whole, labels)) | view.sizes)
    if x.opcode != "gather":
        return replace(x, make.transpose(x, new, [order.index(d) for d in labels]))
    first = [*places.batch.values(), *places.free]
    offsets = [d for d in range(x.shape.rank) if d not in first]
    first += offsets
    shape = with_dimensions(x.shape, [x.shape.dimensions[d] for d in first])
    order = [first.index(d) for d in range(x.shape.rank)]
    return replace(x, make.transpose(x, make.reshape(x, shape, new), order))


def _map_table(x: Instruction) -> bool:
    """Values of rows that are read many times become rows of what is computed of the table."""
    table = x.operands[0]
    if (places := _places(x)) is None:
        return False
    batch = [*range(len(places.batch))]
    along = len(batch)
    rank = along + len(places.free)
    rows = table.shape.dimensions[along]
    own, rest = x.shape.dimensions[:rank], x.shape.dimensions[rank:]
    first = [*range(rank)]
    is_plain = places.along == along and list(places.batch.items()) == [(d, d) for d in batch]
    if not is_plain or places.free != first[along:] or prod(own[along:]) < 2 * rows:
        return False
    for joined in [u for u in x.users if u.opcode == "concatenate"]:
        for user in [u for u in joined.users if u.opcode == "dot"]:
            multiply_apart(user, lambda o: o is x)
    sizes = dict.fromkeys(first[along:], 1) | {along: rows}
    shape = with_dimensions(x.shape, [*own[:along], *sizes.values(), *rest])
    whole = make.reshape(x, shape, table)
    view = View(
        sizes, lambda value, labels: (whole, labels) if value is x and labels[:rank] == first else None
    )
    found = dict[Instruction, Instruction]()
    readers = list(x.users)
    for y in readers:
        labels = [*range(y.shape.rank)] if y.shape.is_array else []
        new = view.of(y, labels) if y not in found and y.shape.dimensions[:rank] == own else None
        if new is not None:
            found[y] = over(y, new, labels, sizes_of((y, labels)) | sizes)
            readers += y.users
    ends = [y for y in found if y.is_root or any(u not in found for u in y.users)]
    for y in ends:
        shape = with_dimensions(y.shape, [*own[:along], rows, *y.shape.dimensions[rank:]])
        small = make.reshape(y, shape, found[y])
        replace(y, gather_rows(y, small, places.indices, along, batch))
    return bool(ends)


def _narrow(x: Instruction) -> bool:
    """Operands that were widened are multiplied as they were."""
    operands = [o.operands[0] if o.opcode == "convert" else o for o in x.operands]
    types = {o.element_type for o in operands}
    if x.element_type != "f32" or len(types) > 1 or types - {"bf16", "f16"}:
        return False
    return replace(x, dot_like(x, x.shape, operands[0], operands[1], DotDimensions.of(x)))


_FEW_TERMS = 8
"""Each term is code of its own. On a CPU 4 × 4 matrices gain 88 times, 8 × 8 a quarter (jaxlib 0.11.1)."""


def _add_products(x: Instruction) -> bool:
    """A product that sums few terms becomes their sum, which fuses, in the dimensions of its reader."""
    dims = DotDimensions.of(x)
    sums = dims.lhs_contracting
    count = x.operands[0].shape.dimensions[sums[0]] if len(sums) == 1 else 0
    has_vector = any(o.shape.rank == 1 for o in x.operands)
    if not 0 < count <= _FEW_TERMS * (4 if has_vector else 1):
        return False
    moved = only_reader(x)
    result = moved if moved is not None and moved.opcode == "transpose" else x
    order = result.dimensions if result is not x else range(x.shape.rank)
    factors = labelled(x)
    terms = []
    for k in range(count):
        parts = (_one_place(x, one, k) for one in factors)
        left, right = (over(x, part, [*order], sizes_of(*factors)) for part in parts)
        terms.append(make.binary(x, "multiply", left, right))
    return replace(result, fold(x, "add", terms))


def _one_place(x: Instruction, one: Labelled, number: int) -> Labelled:
    """A factor at a place along the dimension that a product sums over."""
    (value, labels), along = one, one[1].index(-1)
    part = make.part(x, value, number, number + 1, along)
    place = make.reshape(x, without(part.shape, [along]), part)
    return place, [d for d in labels if d != -1]


def _scaled_sum(x: Instruction) -> tuple[Instruction, Instruction | None] | None:
    """A sum that nothing else reads, and the scalar that scales it."""
    scale = None
    if x.opcode == "multiply":
        sums = [o for o in x.operands if o.opcode == "reduce"]
        scales = [source(o) for o in x.operands if o.opcode != "reduce"]
        if len(sums) != 1 or len(x.users) > 1 or scales[0].shape.dimensions:
            return None
        x = sums[0]
        scale = scales[0]
    is_sum = x.opcode == "reduce" and not x.shape.is_tuple and combines_by(x, "add")
    return (x, scale) if is_sum and len(x.users) == 1 and is_constant(x.operands[1], 0) else None


def _sum_once(x: Instruction) -> bool:
    """Sums of arrays of one shape, scaled and added, become one sum."""
    if any(u.opcode == "add" for u in x.users):
        return False
    terms = terms_of(x)
    sums = [(t, s) for t in terms if (s := _scaled_sum(t)) is not None]
    keys = ((s[0].operands[0].shape, s[0].dimensions) for _, s in sums)
    groups = grouped(zip(keys, sums, strict=True))
    found = max(groups.values(), key=len, default=[])
    if len(found) < 2:
        return False
    parts = []
    for _, (total, scale) in found:
        summand = total.operands[0]
        if scale is not None:
            summand = make.binary(x, "multiply", summand, make.broadcast(x, summand.shape, scale, ()))
        parts.append(summand)
    first = found[0][1][0]
    added = fold(x, "add", parts)
    new = make.reduce(x, added, first.operands[1], first.dimensions, first.to_apply)
    taken = {t for t, _ in found}
    return replace(x, fold(x, "add", [new, *(t for t in terms if t not in taken)]))


def _terms(x: Instruction, f: Instruction) -> list[Labelled]:
    """The values whose difference is a factor of what `x` sums; other factors are one value."""
    if f.opcode == "subtract":
        return [spread_factor(o) for o in f.operands]
    if f.opcode in ("multiply", "divide"):
        scale = spread_factor(f.operands[1])
        found = [on_both(x, f.opcode, t, scale) for t in _terms(x, f.operands[0])]
        return found if len(found) > 1 else [spread_factor(f)]
    return [spread_factor(f)]


def _multiply_differences(x: Instruction) -> bool:
    """Σ(a − b)² becomes |a|² + |b|² − 2 a·b, and Σ g·(a − b), as in its gradient, Σ g·a − Σ g·b."""
    if x.opcode == "dot":
        found = as_sum(x)
        return found is not None and _multiply_differences(found[0]) and replace(x, found[1])
    sizes = dict(enumerate(x.operands[0].shape.dimensions))
    factors = terms_of(x.operands[0], "multiply") if combines_by(x, "add") else []
    parts = [_terms(x, f) for f in factors[:4]]
    differences = [(f, p) for f, p in zip(factors, parts, strict=False) if len(p) > 1]
    scales = [p[0] for p in parts if len(p) == 1]
    is_square = len({f for f, _ in differences}) == 1 and len(differences) == 2
    if len(factors) != len(parts) or not (is_square or (len(differences) == 1 and scales)):
        return False
    scale = reduce(partial(on_both, x, "multiply"), scales) if scales else None
    first = second = differences[0][1]
    if scale is not None:
        second = [on_both(x, "multiply", t, scale) if is_square else scale for t in first]
    pairs = list(zip(first, second, strict=True))
    if is_square:
        pairs.append((first[0], second[1]))
    is_whole = all({*a[1], *b[1]}.issuperset(x.dimensions) for a, b in pairs)
    if not is_whole or any(len(labels) == len(sizes) for _, labels in first + second):
        return False
    remaining = [d for d in sizes if d not in x.dimensions]
    sums = [contracted(x, a, b, remaining) for a, b in pairs]
    if all(value.opcode != "dot" for value, _ in sums):
        return False
    values = [over(x, one, remaining, sizes) for one in sums]
    if is_square:
        values[2] = make.binary(x, "multiply", values[2], make.scalar_like(values[2], -2))
    return replace(x, fold(x, "add" if is_square else "subtract", values))


def root_for_power(x: Instruction) -> bool:
    """x to a power of quarters below 4, or one of these below 1, becomes products with square roots."""
    base = x.operands[0]
    given = source(x.operands[1])
    is_negated = given.opcode == "negate"  # where XLA divided by the power
    exponent = scalar_of(source(given.operands[0]) if is_negated else given)
    if not isinstance(exponent, float):
        return False
    quarters = abs(exponent) * 4
    if quarters % 1 or quarters % 4 == 0 or quarters > 16 or quarters == 2:  # XLA has that root
        return False
    root = make.unary(x, "sqrt", base)
    factors = [base] * int(quarters // 4) + [root] * int(quarters % 4 // 2)
    if quarters % 2:
        factors.append(make.unary(x, "sqrt", root))
    power = fold(x, "multiply", factors)
    if is_negated == (exponent < 0):
        return replace(x, power)
    return replace(x, make.binary(x, "divide", make.scalar_like(base, 1), power))


_NEUTRAL = {
    "add": 0,
    "multiply": 1,
    "and": True,
    "or": False,
}


def _is_neutral(x: Instruction, value: Instruction) -> bool:
    """True for a start that may be combined once more, by what `x` combines with."""
    kind = x.element_type
    starts = {**_NEUTRAL, **dict(zip(("maximum", "minimum"), bounds(kind), strict=True))}
    root = x.to_apply.root
    if [o.opcode for o in root.operands] != ["parameter"] * 2:
        return False
    start = starts.get(root.opcode)
    given = scalar_of(source(value))
    return given is not None and given == start


_OF_GRADIENT = frozenset({"pad", "select-and-scatter"})
"""Operations by which the gradient of a maximum reads what the maximum does."""


def _by_dimension(x: Instruction) -> bool:
    """A window over several dimensions becomes one over each, those that leave out most places first."""
    window = list(window_of(x))
    along = [d for d, w in enumerate(window) if w.size > 1]
    if len(x.operands) != 2 or not _is_neutral(x, x.operands[1]):
        return False
    if any(w.base_dilation > 1 for w in window):
        return False
    if prod(w.size for w in window) <= sum(window[d].size for d in along):
        return False
    # The gradient of a maximum selects in windows as well, and two selections take longer than one.
    reads = reach(x.operands[:1], lambda o: [u for u in o.users if u.opcode in _OF_GRADIENT])
    if any(r.opcode == "select-and-scatter" for r in reads):
        return False
    along.sort(key=lambda d: -window[d].stride)
    others = along[1:]
    sizes = [*x.operands[0].shape.dimensions]
    value = x.operands[0]
    for taken in ({*range(len(window))} - {*others}, *({d} for d in others)):
        own = tuple(w if d in taken else WindowDimension(1) for d, w in enumerate(window))
        sizes = [x.shape.dimensions[d] if d in taken else n for d, n in enumerate(sizes)]
        shape = with_dimensions(x.shape, sizes)
        called = [("to_apply", x.to_apply)]
        value = make.add(x, "reduce-window", shape, [value, x.operands[1]], called=called, window=Window(own))
    return replace(x, value)


_MOST_TAPS = 32  # taps of a filter whose products are written one by one


def _add_shifts(x: Instruction) -> bool:
    """A convolution of each channel by itself becomes a sum: a shifted array times a number for each tap."""
    window = list(window_of(x))
    labels = labels_of(x)
    (value, filters), feature = x.operands, labels.lhs.index("f")
    channels = x.shape.dimensions[feature]
    taps = prod(w.size for w in window)
    is_plain = labels.lhs == labels.output and x.raw("batch_group_count", "1") == "1"
    is_each = channels == value.shape.dimensions[feature] == filters.shape.element_count / taps
    if not (is_plain and is_each) or taps > _MOST_TAPS or any(w.window_reversal for w in window):
        return False
    wide = "f32" if x.element_type in ("bf16", "f16") else x.element_type  # as the sums of a convolution
    value, filters = (make.convert(x, o, wide) for o in x.operands)
    along = [(labels.lhs.index(str(k)), labels.rhs.index(str(k)), w) for k, w in enumerate(window)]
    for d, _, w in along:
        value = make.padded(x, value, w.padding_low, w.padding_high, d, w.base_dilation - 1)
    terms = []
    for tap in product(*(range(w.size) for w in window)):
        shifted = value
        factor = filters
        for n, (d, e, w) in zip(tap, along, strict=True):
            start = n * w.window_dilation
            span = (x.shape.dimensions[d] - 1) * w.stride
            shifted = make.part(x, shifted, start, start + span + 1, d, w.stride)
            factor = make.part(x, factor, n, n + 1, e)
        factor = make.reshape(x, array(wide, [channels]), factor)
        factor = make.broadcast(x, shifted.shape, factor, [feature])
        terms.append(make.binary(x, "multiply", shifted, factor))
    return replace(x, fold(x, "add", terms))


def _smooth(size: int) -> int:
    """The least product of a power of two and 1, 3, 5 or 9 from `size` on: fast to transform."""
    return min(odd << (-(-size // odd) - 1).bit_length() for odd in (1, 3, 5, 9))


def _transform_filter(x: Instruction) -> bool:
    """A convolution of one channel, or of each by itself, becomes a product of Fourier transforms."""
    labels = labels_of(x)
    window = list(window_of(x))
    is_plain = all(w.stride == w.window_dilation == 1 and not w.window_reversal for w in window)
    taps = prod(w.size for w in window)
    channels = x.operands[0].shape.dimensions[labels.lhs.index("f")]
    filters_of_each = x.operands[1].shape.element_count // taps
    is_each = channels in (1, filters_of_each) and x.raw("feature_group_count", "1") == str(channels)
    is_plain = is_plain and x.raw("batch_group_count", "1") == "1"
    if not (is_plain and is_each and 0 < len(window) < 4) or x.element_type != "f32":
        return False
    spatial = range(len(window))
    order = [labels.lhs.index(k) for k in ("b", "f", *map(str, spatial))]
    value = make.transpose(x, x.operands[0], order)
    filters = make.transpose(x, x.operands[1], [labels.rhs.index(k) for k in ("o", "i", *map(str, spatial))])
    along = range(2, value.shape.rank)
    filters = make.add(x, "reverse", filters.shape, [filters], dimensions=make.numbers(along))
    for d, w in zip(along, window, strict=True):
        value = make.padded(x, value, w.padding_low, w.padding_high, d, w.base_dilation - 1)
    sizes = [_smooth(value.shape.dimensions[d]) for d in along]
    spectra = []
    for y in (value, filters):
        for d, size in zip(along, sizes, strict=True):
            y = make.padded(x, y, 0, size - y.shape.dimensions[d], d)
        shape = array("c64", [*y.shape.dimensions[:-1], sizes[-1] // 2 + 1])
        lengths = make.numbers(sizes)
        spectra.append(make.add(x, "fft", shape, [y], fft_type="RFFT", fft_length=lengths))
    both = array("c64", [value.shape.dimensions[0], filters_of_each, *spectra[1].shape.dimensions[2:]])
    shape = array("c64", [*both.dimensions[:1], *spectra[0].shape.dimensions[1 + (channels == 1) :]])
    first = make.reshape(x, shape, spectra[0])
    first = make.broadcast(x, both, first, [0, *along] if channels == 1 else range(both.rank))
    second = make.reshape(x, array("c64", both.dimensions[1:]), spectra[1])
    found = make.binary(x, "multiply", first, make.broadcast(x, both, second, range(1, both.rank)))
    shape = array("f32", [*both.dimensions[:2], *sizes])
    found = make.add(x, "fft", shape, [found], fft_type="IRFFT", fft_length=lengths)
    for d, w in zip(along, window, strict=True):
        end = value.shape.dimensions[d]
        found = make.part(x, found, w.size - 1, end, d)
    back = [order.index(labels.lhs.index(k)) for k in labels.output]
    return replace(x, make.transpose(x, found, back))


_MIRRORING = frozenset("add subtract multiply divide negate select exponential convert".split())


def _mirrors(
    x: Instruction,
    axes: Sequence[int],
    last: int,
    written: dict[Instruction, Elements],
) -> bool:
    """True for a spectrum of which one half mirrors the other along these dimensions, as that of real numbers
    does. A real result has no part of those in the first and middle places of the `last` that do not."""
    if not axes:
        value = x.operands[0] if x.opcode == "convert" else x
        return value.element_type in FLOATING_TYPES
    with suppress(CannotEvaluate):
        given = elements(x, written, MOST_EVALUATED)
        differs = given != np.roll(np.flip(given, tuple(axes)), 1, axes).conj()
        if last in axes:
            size = given.shape[last]
            differs = np.delete(differs, [0, *[size // 2] * (size % 2 == 0)], last)
        return not differs.any()
    if x.opcode in _MIRRORING or (x.opcode in ELEMENTWISE_OPCODES and x.element_type in FLOATING_TYPES):
        return all(_mirrors(o, axes, last, written) for o in x.operands)
    if x.opcode == "broadcast":
        own = [x.dimensions.index(d) for d in axes if d in x.dimensions]
        return _mirrors(x.operands[0], own, own[-1] if last in x.dimensions else -1, written)
    return _is_of_real(x) and len(numbers_of(x, "fft_length")) == len(axes)


def _is_of_real(x: Instruction) -> bool:
    """True for a Fourier transform of real numbers."""
    if x.opcode != "fft" or x.raw("fft_type") != "FFT":
        return False
    below = x.operands[0]
    if below.opcode != "convert":
        return False
    return below.operands[0].element_type in FLOATING_TYPES


def _transformed(x: Instruction, real: Instruction, kind: str, shape: Shape) -> Instruction:
    """The transform `x` of another kind."""
    new = make.copy_of(x, [real], shape)
    new.attributes = new.attributes.updated(fft_type=kind)
    return new


def _real_transform(x: Instruction) -> bool:
    """The half that is read of a transform of real numbers, and a real result of one and back."""
    whole = x.operands[0]
    is_back = x.opcode == "real"
    if is_back and (whole.opcode != "fft" or whole.raw("fft_type") != "IFFT"):
        return False
    spectrum = whole.operands[0] if is_back else whole
    labels = [*range(spectrum.shape.rank)]
    along = labels[-1]
    if not is_back and (cut := [d for d in labels if x.shape.dimensions[d] < whole.shape.dimensions[d]]):
        along = cut[0]
    half = {along: spectrum.shape.dimensions[along] // 2 + 1}
    axes = labels[-len(numbers_of(whole, "fft_length")) :] if is_back else []
    if is_back and not _mirrors(spectrum, axes, along, written_before(x)):
        return False
    if not is_back and ranges_of(x)[along].limit > half[along]:
        return False
    found = list[Instruction]()

    def last(value: Instruction, own: list[int]) -> Labelled:
        sizes = [half.get(d, n) for d, n in zip(own, value.shape.dimensions, strict=True)]
        if own[-1] != along or not _is_of_real(value):
            return make.slice_of(value, value, [0] * len(own), sizes), own
        new = _transformed(
            value,
            value.operands[0].operands[0],
            "RFFT",
            with_dimensions(value.shape, sizes),
        )
        found.append(new)
        return new, own

    part = View(half, last).of(spectrum, labels)
    if part is None or not found:
        return False
    value = over(
        spectrum,
        part,
        labels,
        sizes_of((spectrum, labels)) | half,
    )
    if is_back:
        return replace(x, _transformed(whole, value, "IRFFT", x.shape))
    return replace(x, make.add(x, "slice", x.shape, [value], slice=ranges_of(x)))


def _cumulated(x: Instruction) -> tuple[int, bool] | None:
    """The dimension along which a window of all elements is cumulated, and whether from the first on."""
    window = list(window_of(x))
    along = [d for d, w in enumerate(window) if w.size > 1]
    if len(along) != 1:
        return None
    w = window[along[0]]
    n = x.shape.dimensions[along[0]]
    is_plain = w.size == n and {w.padding_low, w.padding_high} == {0, n - 1} and w.stride == 1
    return (along[0], w.padding_low > 0) if is_plain else None


def _cumulate_by_product(x: Instruction) -> bool:
    """A cumulative sum over a short dimension becomes a product with a triangle of ones."""
    found = _cumulated(x)
    if found is None or x.element_type not in FLOATING_TYPES or not combines_by(x, "add"):
        return False
    d, is_forward = found
    n = x.shape.dimensions[d]
    if n > 512 or x.shape.element_count < MIN_ELEMENTS or not is_constant(x.operands[1], 0):
        return False
    square = array("s32", [n, n])
    direction = "LE" if is_forward else "GE"
    numbers_down, numbers_across = (make.iota(x, square, d) for d in (0, 1))
    test = make.compare(x, direction, numbers_down, numbers_across)
    ones = make.convert(x, test, x.element_type)
    result = [*range(x.shape.rank)]
    a = (x.operands[0], [-1 if k == d else k for k in result])
    b = (ones, [-1, d])
    return replace(x, over(x, contracted(x, a, b, result), result, sizes_of(a, b)))


_LEAST_ROW = 32  # elements of a row: a loop over shorter ones was slower (jaxlib 0.11.1, CPU)


def _cumulate_by_rows(x: Instruction) -> bool:
    """A cumulative sum over rows becomes a loop that adds a row in each iteration."""
    found = _cumulated(x)
    root = x.to_apply.root
    if found is None or [o.opcode for o in root.operands] != ["parameter"] * 2:
        return False
    d, is_forward = found
    order = [d, *(k for k in range(x.shape.rank) if k != d)]
    if prod(x.shape.dimensions[d + 1 :]) < _LEAST_ROW:
        return False
    given = make.transpose(x, x.operands[0], order)  # a scan takes rows of the first dimension
    n = given.shape.dimensions[0]
    row = [1, *given.shape.dimensions[1:]]
    start = make.broadcast(x, with_dimensions(x.shape, row), x.operands[1], ())
    whole = make.broadcast(x, given.shape, x.operands[1], ())

    def body(number: Instruction, state: list[Instruction]) -> list[Instruction]:
        total, values, found_rows = state
        last = make.scalar(number, "s32", n - 1)
        place = number if is_forward else make.binary(number, "subtract", last, number)
        starts = row_starts(x, place, number)
        value = make.dynamic_slice(number, values, starts, row)
        total = make.binary(number, root.opcode, total, value)
        return [total, values, make.dynamic_update_slice(number, found_rows, total, starts)]

    rows = counted_loop(x, [start, given, whole], body, n)[-1]
    back = [order.index(k) for k in range(x.shape.rank)]
    return replace(x, make.transpose(x, rows, back))


_AS_IT_IS = ("custom-call", "bitcast-convert", "rng-bit-generator", "infeed", "outfeed")
"""Operations that hang on the type of what they read or return."""


def _compute_narrow(x: Instruction) -> bool:
    """All that is computed in float64 from float32 is computed in float32."""
    if x.element_type != "f64" or x.operands[0].element_type != "f32":
        return False
    module = module_of(computation_of(x))
    entry = module.entry
    wide = [i for i in module.instructions() if _narrower(i.shape) != i.shape]
    given = [i for i in wide if i in entry.parameters]
    if any(p.shape.rank for p in given) or any(has([i, *i.operands], *_AS_IT_IS) for i in wide):
        return False
    root = entry.root
    results = root.outputs
    types = [r.element_type for r in results]
    for i in wide:
        if i not in given:
            i.shape = _narrower(i.shape)
    for p in given:
        users = list(p.users)
        narrow = make.convert(p, p, "f32")
        for user in users:
            p.replace_use_with(user, narrow)
    found = [make.convert(root, r, kind) for r, kind in zip(results, types, strict=True)]
    entry.root = make.tuple_of(root, found) if root.opcode == "tuple" else found[0]
    return True


def _narrower(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple_of([_narrower(s) for s in shape.tuple_shapes])
    types = {"f64": "f32", "c128": "c64"}
    return shape.with_element_type(types.get(shape.element_type, shape.element_type))


def _has_low_first(x: Instruction) -> bool | None:
    """False for a sort that has the greatest of its first operand first; None for other orders."""
    root = x.to_apply.root
    compared = [{i.payload for i in origins(o) if i.opcode == "parameter"} for o in root.operands]
    is_plain = root.opcode == "compare" and compared == [{"0"}, {"1"}]
    return {"LT": True, "GT": False}.get(root.raw("direction") or "") if is_plain else None


def _extreme(x: Instruction) -> bool:
    """One end of a sorted row becomes its maximum or minimum."""
    low_first = _has_low_first(x)
    if x.shape.is_tuple or low_first is None:
        return False
    (along,), size = x.dimensions, x.shape.dimensions[x.dimensions[0]]
    if any(u.opcode != "slice" or u.shape.dimensions[along] != 1 for u in x.users):
        return False
    ends = [ranges_of(user)[along].start for user in x.users]
    if set(ends) - {0, size - 1} or not ends:
        return False
    for user, start in zip(list(x.users), ends, strict=True):
        is_largest = (start > 0) == low_first
        kind = x.element_type
        bound = bounds(kind)[not is_largest]
        if bound is None:
            return False
        own = [(r.start, r.limit, r.stride) for r in ranges_of(user)]
        own[along] = 0, size, 1
        function = make.reducer(x, "extreme", "maximum" if is_largest else "minimum", kind)
        rows = make.slice_of(x, x.operands[0], *zip(*own, strict=True))
        replace(user, make.reduce(x, rows, make.scalar(x, kind, bound), [along], function))
    return True


_SORTED = 8  # rows of which more than one in so many is read are sorted as fast


def _few_sorted(x: Instruction) -> bool:
    """The first or the last of sorted rows, and their places, become those of `jax.lax.top_k`."""
    low_first, data, (along,) = _has_low_first(x), x.operands[0], x.dimensions
    parts = [(x, u) for u in x.users]
    if x.shape.is_tuple:
        numbers, dims = spread(x.operands[1])
        counts = len(x.operands) == 2 and counted(numbers) in dims and dims.index(counted(numbers)) == along
        parts = [(e, u) for e in x.users for u in e.users] if counts else []
    if low_first is None or not parts or any(u.opcode != "slice" for _, u in parts):
        return False
    size = data.shape.dimensions[along]
    ranges = [ranges_of(u)[along] for _, u in parts]
    ends = max(r.limit for r in ranges), size - min(r.start for r in ranges)
    count = min(ends)
    is_last = ends[1] < ends[0]
    is_one = count == 1 and not x.shape.is_tuple
    if count * _SORTED > size or is_one or data.element_type not in FLOATING_TYPES:
        return False
    others = [d for d in range(data.shape.rank) if d != along]
    sign = "copy" if is_last == low_first else "negate"
    given = make.unary(x, sign, make.transpose(x, data, [*others, along]))
    shape = with_dimensions(given.shape, [*given.shape.dimensions[:-1], count])
    both = Shape.tuple_of([shape, shape.with_element_type("s32")])
    values, places = make.elements(make.add(x, "topk", both, [given], k=count, largest="true"), (0, 1))
    back = [len(others) if d == along else others.index(d) for d in range(data.shape.rank)]
    shift = size - count if is_last else 0
    for element, user in parts:
        is_value = element is x or element.tuple_index == 0
        new = make.transpose(x, make.unary(x, sign, values) if is_value else places, back)
        if is_last:
            new = make.add(x, "reverse", new.shape, [new], dimensions=make.numbers([along]))
        own = list(ranges_of(user))
        own[along] = SliceRange(own[along].start - shift, own[along].limit - shift, own[along].stride)
        replace(user, make.add(x, "slice", user.shape, [new], slice=SliceRanges(own)))
    return True


def _rows_of(x: Instruction) -> tuple[Numbers, int] | None:
    """The whole rows that a scatter writes, or a gather reads, where they count, and their dimension."""
    is_scatter = x.opcode == "scatter"
    names = ("inserted_window_dims", "scatter_dims_to_operand_dims", "update_window_dims")
    names = names if is_scatter else ("collapsed_slice_dims", "start_index_map", "offset_dims")
    table = x.operands[0].shape
    rows = (x.operands[2] if is_scatter else x).shape
    firsts = [numbers_of(x, n) for n in names]
    others = [d for d in range(table.rank) if (d,) != firsts[0]]
    is_plain = firsts[0] == firsts[1] and firsts[2] == tuple(others) and rows.rank == table.rank
    if not is_plain or len(others) != rows.rank - 1 or len(x.operands) > 3:
        return None
    found = numbers(x.operands[1])
    whole = all(rows.dimensions[d] == table.dimensions[d] for d in others)
    return (found, firsts[0][0]) if found is not None and whole else None


def _segments(x: Instruction) -> bool:
    """Sums of equal segments become a sum over an axis."""
    found, along = _rows_of(x) or (None, 0)
    updates = x.operands[2]
    count, *rest = x.shape.dimensions
    if found is None or along or found.first or found.starts or found.step != 1 or not combines_by(x, "add"):
        return False
    if found.repeat < 2 or updates.shape.dimensions[0] != count * found.repeat:
        return False
    blocks = make.reshape(x, with_dimensions(x.shape, [count, found.repeat, *rest]), updates)
    kind = x.element_type
    total = make.reduce(x, blocks, make.zero(x, kind), [1], x.to_apply)
    return replace(x, make.binary(x, "add", total, x.operands[0]))


def _window(x: Instruction) -> bool:
    """Rows that follow each other, or every n-th row, are written or read without indices."""
    found, along = _rows_of(x) or (None, 0)
    if found is None or found.repeat != 1 or found.step < 1:
        return False
    table = x.operands[0]
    sizes = (x.operands[2].shape if x.opcode == "scatter" else x.shape).dimensions
    size = table.shape.dimensions[along]
    last = None if found.starts else found.first + (sizes[along] - 1) * found.step
    if last is not None and (last >= size or found.first < 0):
        return False
    kind = x.operands[1].element_type
    if found.step == 1:
        starts = [make.scalar(x, kind, 0)] * len(sizes)
        starts[along] = found.start(x, kind)
        old = make.dynamic_slice(x, table, starts, sizes)
        if x.opcode == "gather":
            return replace(x, old)
        update = _combined(x, old, x.operands[2])
        return update is not None and replace(x, make.dynamic_update_slice(x, table, update, starts))
    if last is None:
        return False
    if x.opcode == "gather":
        return replace(x, make.part(x, table, found.first, last + 1, along, found.step))
    places = found.first, size - last - 1, along, found.step - 1
    spread_out = make.padded(x, x.operands[2], *places)
    if combines_by(x, "add"):
        return replace(x, make.binary(x, "add", table, spread_out))
    if not combines_by(x, "parameter"):
        return False
    given = x.operands[2].shape.with_element_type("pred")
    ones = make.broadcast(x, given, make.add(x, "constant", array("pred"), payload="true"), ())
    return replace(x, make.select(x, make.padded(x, ones, *places), spread_out, table))


def _combined(x: Instruction, old: Instruction, new: Instruction) -> Instruction | None:
    root = x.to_apply.root
    if root.opcode == "parameter":
        return new if root.parameter_number else old
    is_plain = len(root.operands) == 2 and all(o.opcode == "parameter" for o in root.operands)
    return make.binary(x, root.opcode, old, new) if is_plain else None


def _scatter_stacked(x: Instruction) -> bool:
    """Sums over the same segments become one of stacked values."""
    indices, updates = x.operands[1:] if len(x.operands) == 3 else (x, x)
    if updates.shape.rank != 1 or x.shape.rank != 1 or not combines_by(x, "add") or not x.users:
        return False
    same = list[Instruction]()
    for u in indices.users:
        fits = u.opcode == "scatter" and u.operands[1] is indices and combines_by(u, "add")
        fits = fits and (u.shape, u.operands[2].shape) == (x.shape, updates.shape)
        is_apart = not any(depends_on(u, v) or depends_on(v, u) for v in same)
        if fits and is_apart and (u.users or u.is_root):
            same.append(u)
    if len(same) < 2 or same[0] is not x:
        return False

    def stacked(k: int) -> Instruction:
        parts = (u.operands[k] for u in same)
        columns = [make.reshape(x, with_dimensions(p.shape, [*p.shape.dimensions, 1]), p) for p in parts]
        return make.concatenate(x, columns, 1)

    init = stacked(0)
    new = make.copy_of(x, [init, indices, stacked(2)], init.shape)
    new.attributes = new.attributes.updated(update_window_dims="{1}")
    for k, u in enumerate(same):
        column = make.part(x, new, k, k + 1, 1)
        u.replace_all_uses_with(make.reshape(x, u.shape, column))
    return True


def _write_at_once(x: Instruction) -> bool:
    if any(u.opcode == x.opcode and u.operands[0] is x for u in x.users):
        return False
    rows = list[tuple[int, Instruction]]()
    reads = list[tuple[Instruction, int]]()
    first = x
    while (row := row_written(first)) is not None and row[0] == 0:
        slices = [] if first is x else [u for u in first.users if u.opcode == "slice"]
        if first is not x and len(first.users) > len(slices) + 1:
            break
        reads += ((u, len(rows)) for u in slices)
        rows.append(row[1:])
        first = first.operands[0]
    read = {u: part for u, k in reads if (part := _row_read(u, rows[k:])) is not None}
    rows.sort(key=lambda row: row[0])
    is_apart = any(start + part.shape.dimensions[0] != after for (start, part), (after, _) in pairwise(rows))
    if len(rows) < 3 or is_apart or len(read) < len(reads):
        return False
    joined = make.concatenate(x, [part for _, part in rows], 0)
    starts = row_starts(x, make.scalar(x, "s32", rows[0][0]), x)
    new = make.dynamic_update_slice(x, first, joined, starts)
    for u, part in read.items():
        u.replace_all_uses_with(part)
    return replace(x, new)


def _row_read(u: Instruction, rows: Sequence[tuple[int, Instruction]]) -> Instruction | None:
    """The rows that a slice reads of those written so far, or None."""
    along = ranges_of(u)[0]
    fits = (part for start, part in rows if (start, part.shape) == (along.start, u.shape))
    return next(fits, None) if along.stride == 1 else None


_FUSABLE = ELEMENTWISE_OPCODES | {"broadcast", "reshape", "transpose", "copy", "reduce"}


def _below(x: Instruction) -> list[Instruction]:
    """All that an operand is computed from, up to products."""
    found = [x]
    seen = {x}
    for i in found:
        fresh = [o for o in i.operands if o not in seen] if i.opcode in _FUSABLE else []
        found += dict.fromkeys(fresh)
        seen.update(fresh)
    return found


def _before_widening(x: Instruction) -> Instruction:
    return x.operands[0] if x.opcode == "convert" and x.element_type == "f32" else x


def _attend(scores: Instruction) -> bool:
    """Products around a softmax become cuDNN's attention, and those of its gradient become its gradient.
    cuDNN takes float16 and bfloat16, heads of at most 256."""
    operands = [_before_widening(o) for o in scores.operands]
    dims = DotDimensions.of(scores)
    head = 1
    for d in dims.lhs_contracting:
        head *= scores.operands[0].shape.dimensions[d]
    is_narrow = {o.element_type for o in operands} in ({"bf16"}, {"f16"})
    if not is_narrow or not dims.lhs_batch or head % 8 or head > 256:
        return False
    products: dict[tuple[bool, bool], tuple[Instruction, Instruction]] = {}
    for x in computation_of(scores).post_order():
        for side in (0, 1) if x.opcode == "dot" and x is not scores else ():
            below = _below(x.operands[side])
            exponential = next((i for i in below if i.opcode == "exponential"), None)
            if exponential is None or scores not in _below(exponential.operands[0]):
                continue
            sums = (i for i in below if i.opcode == "reduce" and exponential in _below(i.operands[0]))
            total = next(sums, None)
            along = DotDimensions.of(x).contracting(side)
            own, sizes = (without_ones(i.shape).dimensions for i in (x.operands[side], exponential))
            if total is None or own != sizes:
                return False
            is_gradient = any(i.opcode == "dot" and i is not scores for i in below)
            ends = (x.operands[side].shape.rank - max(along), exponential.shape.rank - max(total.dimensions))
            products[ends[0] == ends[1], is_gradient] = x, x.operands[1 - side]
    output = products.get((True, False))
    value = products.get((False, False))
    if output is None and value is None:
        return False
    narrow = operands[0].element_type
    config = json.dumps({"dimensions": [str(n) for n in scores.shape.dimensions]})
    raw = f'{{"cudnn_fmha_backend_config": {{"intermediate_tensor_shape": {config}}}}}'

    def call(name: str, given: list[Instruction], results: list[Shape]) -> list[Instruction]:
        shape = Shape.tuple_of([*results, array("u8", [0])])
        texts = {"custom_call_target": f'"__cudnn$fmhaSoftmax{name}"', "backend_config": raw}
        new = make.add(scores, "custom-call", shape, given, copied_attributes=texts)
        return make.elements(new, range(len(results)))

    if output is not None:
        result = output[0].shape.with_element_type(narrow)
        replace(output[0], *call("", [*operands, _before_widening(output[1])], [result]))
    rest = [products.get(key) for key in ((True, True), (False, True), (False, False))]
    gradients = [pair for pair in rest if pair is not None]
    if value is not None:
        results = [x.shape.with_element_type(narrow) for x, _ in gradients]
        found = call("Backward", [*operands, *operands, value[1]], results)
        for (x, _), new in zip(gradients, found, strict=True):
            replace(x, new)
    return True


def _scatter_rows(x: Instruction) -> bool:
    """A scatter of windows becomes one of rows: nothing is looked up along dimensions that a window fills,
    and those along which it has one element are no part of it."""
    table, indices, updates, *more = x.operands
    names = ("input_batching_dims", "update_window_dims", "scatter_dims_to_operand_dims")
    batch, window, along = (numbers_of(x, name) for name in names)
    rank = indices.shape.rank - 1
    if more or x.raw("inserted_window_dims") != "{}":
        return False
    if x.raw("index_vector_dim") != str(rank):
        return False
    filled = (d for d in range(table.shape.rank) if d not in batch)
    places = zip(filled, window, strict=True)
    taken = {d: w for d, w in places if d in along and updates.shape.dimensions[w] == 1}
    columns = _columns(indices)
    chosen = [along[k] for k in columns]
    if not chosen or not taken.keys() >= {*chosen}:
        return False
    parts = [make.part(x, indices, k, k + 1, rank) for k in columns]
    rows = make.reshape(x, without(updates.shape, [*taken.values()]), updates)
    new = make.copy_of(x, [table, make.concatenate(x, parts, rank), rows])
    rest = [w for w in range(updates.shape.rank) if w not in taken.values()]
    new.attributes = new.attributes.updated(
        update_window_dims=make.numbers(rest.index(w) for w in window if w in rest),
        inserted_window_dims=make.numbers(taken),
        scatter_dims_to_operand_dims=make.numbers(chosen),
    )
    return replace(x, new)


def _index_rows(x: Instruction) -> bool:
    """A gather or scatter of windows, or of the elements of whole rows, becomes one of rows."""
    if x.opcode == "gather":
        return _gather_windows(x)
    return _scatter_rows(x) or _scatter_elements(x)


def _gather_windows(x: Instruction) -> bool:
    """A gather of windows that begin anywhere along one dimension, and fill the others."""
    table, indices = x.operands
    sizes = numbers_of(x, "slice_sizes")
    rank = indices.shape.rank - 1
    whole = [d for d, n in enumerate(table.shape.dimensions) if sizes[d] == n]
    moved = [(k, d) for k, d in enumerate(numbers_of(x, "start_index_map")) if d not in whole]
    is_plain = x.raw("collapsed_slice_dims") == "{}" and not numbers_of(x, "operand_batching_dims")
    if not is_plain or x.raw("index_vector_dim") != str(rank):
        return False
    if len(moved) != 1 or len(whole) + 1 < table.shape.rank:
        return False
    ((column, along),) = moved
    count = sizes[along]
    if count == 1 or prod(sizes) == count:
        return False
    starts = make.part(x, indices, column, column + 1, rank)
    starts = make.reshape(x, without(starts.shape, [rank]), starts)
    last = make.scalar_like(starts, table.shape.dimensions[along] - count)
    starts = make.binary(x, "minimum", starts, last)
    starts = make.binary(x, "maximum", starts, make.scalar_like(starts, 0))
    shape = with_dimensions(starts.shape, [*starts.shape.dimensions, count])
    first = make.broadcast(x, shape, starts, range(rank))
    rows = gather_rows(x, table, make.binary(x, "add", first, make.iota(x, shape, rank)), along)
    offsets = numbers_of(x, "offset_dims")
    order = [p for p in range(x.shape.rank) if p not in offsets]
    order += [offsets[d] for d in (along, *whole)]
    return replace(x, make.transpose(x, rows, [order.index(p) for p in range(x.shape.rank)]))


def _scatter_elements(x: Instruction) -> bool:
    """A scatter of elements of which one index counts up, and the others are equal along a whole row."""
    table, indices, *updates = x.operands
    along = numbers_of(x, "scatter_dims_to_operand_dims")
    inserted = numbers_of(x, "inserted_window_dims")
    columns = indices.operands if indices.opcode == "concatenate" else []
    is_of_elements = len(inserted) == table.shape.rank == len(columns) == len(along) > 1
    if not is_of_elements or len(updates) > 1 or x.raw("index_vector_dim") != str(indices.shape.rank - 1):
        return False
    for k, d in enumerate(map(counted, columns)):
        others = [c for c in columns if c is not columns[k]]
        size = table.shape.dimensions[along[k]]
        if d is None or indices.shape.dimensions[d] != size or not all(_is_repeated(c, d) for c in others):
            continue
        parts = [make.part(x, c, 0, 1, d) for c in others]
        places = [make.reshape(x, without(p.shape, [d]), p) for p in parts]
        joined = make.concatenate(x, places, indices.shape.rank - 2)
        new = make.copy_of(x, [table, joined, *updates])
        new.attributes = new.attributes.without("indices_are_sorted").updated(
            update_window_dims=make.numbers([d]),
            inserted_window_dims=make.numbers(n for n in inserted if n != along[k]),
            scatter_dims_to_operand_dims=make.numbers(n for n in along if n != along[k]),
            index_vector_dim=str(indices.shape.rank - 2),
        )
        return replace(x, new)
    return False


def _is_repeated(x: Instruction, along: int) -> bool:
    """True if all elements along a dimension are equal."""
    if x.opcode == "broadcast":
        return along not in x.dimensions or _is_repeated(x.operands[0], x.dimensions.index(along))
    if x.opcode == "reshape":
        below = x.operands[0]
        is_same = below.shape.dimensions[: along + 1] == x.shape.dimensions[: along + 1]
        return is_same and _is_repeated(below, along)
    return x.opcode in ELEMENTWISE_OPCODES and all(_is_repeated(o, along) for o in x.operands)


def _columns(indices: Instruction) -> list[int]:
    """The columns of clamped indices that the limits do not make 0; none for others."""
    if indices.opcode == "clamp":
        with suppress(CannotEvaluate, IndexError):  # a scalar limits all
            low, high = (elements(o, {}, MOST_EVALUATED) for o in indices.operands[::2])
            return [k for k in range(high.shape[-1]) if (low | high)[..., k].any()]
    return []


_ROWS = 8
"""Sublanes of a TPU's tile."""


def _repeat_row(x: Instruction) -> bool:
    """A product of one row is taken of equal rows, as many as a tile has; alone it is a sum of elements."""
    factors, rows = labelled(x), x.shape.rank
    order, sizes = [rows, *range(rows)], sizes_of(*factors) | {rows: _ROWS}
    for (row, labels), other in (factors, factors[::-1]):
        is_row = all(d < 0 or d in other[1] or sizes[d] == 1 for d in labels)
        is_matrix = any(d not in labels and sizes[d] > 1 for d in other[1])
        if is_row and is_matrix and other[0].shape.byte_size >= MIN_BYTES:
            shape = array(row.element_type, [_ROWS, *row.shape.dimensions])
            equal = make.broadcast(x, shape, row, range(1, shape.rank)), [rows, *labels]
            whole = over(x, contracted(x, equal, other, order), order, sizes)
            return replace(x, make.part(x, whole, 0, 1))
    return False


RESTATED = {
    "multiply-narrow-sum-wide": Rewriting("dot", _narrow),
    "take-first": Rewriting("gather slice dynamic-slice", _take_first),
    "map-the-table": Rewriting("gather", _map_table),
    "take-not-onehot": Rewriting("dot reduce", _take),
    "pick-the-label": Rewriting("reduce", partial(_take, is_product=True)),
    "use-the-structure": Rewriting("dot", as_slices),
    "scale-not-diagonal": Rewriting("dot", scale_each),
    "attention-by-cudnn": Rewriting("dot", _attend, "gpu", "cuDNN attention"),
    "window-by-dimension": Rewriting("reduce-window", _by_dimension),
    "add-the-shifts": Rewriting("convolution", _add_shifts),
    "convolve-by-fft": Rewriting("convolution", _transform_filter, "cpu"),
    "real-fft": Rewriting("slice real", _real_transform),
    "diagonal-alone": Rewriting("gather reduce", diagonal_alone),
    "multiply-not-sum": Rewriting("reduce", partial(product_of_sums, opcode="multiply")),
    "sum-before-the-product": Rewriting("reduce", partial(product_of_sums, opcode="dot")),
    "multiply-the-small-first": Rewriting("dot", small_first),
    "group-not-repeat": Rewriting("dot", multiply_unrepeated),
    "add-the-small-products": Rewriting("dot", _add_products),
    "distances-by-a-product": Rewriting("reduce dot", _multiply_differences),
    "power-by-a-root": Rewriting("power", root_for_power),
    "sum-once": Rewriting("add", _sum_once),
    "triangular-cumsum": Rewriting("reduce-window", _cumulate_by_product),
    "scan-not-cumsum": Rewriting("reduce-window", _cumulate_by_rows, "cpu"),
    "compute-in-float32": Rewriting("convert", _compute_narrow),
    "max-not-sort": Rewriting("sort", _extreme),
    "top-k-not-sort": Rewriting("sort", _few_sorted),
    "reshape-not-segments": Rewriting("scatter", _segments),
    "repeat-the-row": Rewriting("dot", _repeat_row, "tpu"),
    "index-all-rows": Rewriting("scatter gather", _index_rows, "tpu"),
    "window-not-scatter": Rewriting("scatter gather", _window),
    "update-the-rows": Rewriting("scatter", add_to_rows),
    "choose-what-is-written": Rewriting("select", choose_written),
    "one-segment-sum": Rewriting("scatter", _scatter_stacked, "gpu"),
    "write-at-once": Rewriting("dynamic-update-slice scatter", _write_at_once),
}
