"""Rows that are gathered, scattered, sliced or written before optimizations, in another way."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import prod

from hlofuse.analysis.components import depends_on
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import FLOATING_TYPES, Instruction, Ints, Record, WindowDimension, reach, values
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import bounds, integer_of
from hlofuse.passes.common.shapes import (
    array,
    numbers_of,
    others,
    ranges_of,
    slice_sizes_of,
    window_of,
    with_dimensions,
    without,
)
from .carried import Together
from .contracting import (
    Labelled,
    View,
    contracted,
    is_covered,
    labelled,
    multiplied,
    multiply_apart,
    on_both,
    on_diagonal,
    over,
    sizes_of,
    spread_factor,
    summed,
    total_of,
    with_factors,
)
from .matching import both_orders, combines_by, has, is_constant, is_masked, is_total, only_reader, origins
from .updates import add_to_rows, choose_written, write_row
from .windows import is_neutral
from .written import (
    SMALL,
    Numbers,
    Rewriting,
    counted,
    counted_dimension,
    dims_of,
    fold,
    formula_values,
    gather_rows,
    indexed,
    limited,
    moved,
    numbers,
    onehot,
    place_of,
    replace,
    row_written,
    spread,
    starts_at,
    sums_at,
)


def _at_indices(
    x: Instruction,
    factors: Sequence[Labelled],
    result: list[int],
) -> bool:
    """Σ of a one-hot array times another becomes what that has at the indices, or sums for each index."""
    for one, other in both_orders(factors):
        new = _taken(x, one, other, result) or _taken_at_pairs(x, one, other, result)
        if new is not None:
            return replace(x, over(x, new, result, sizes_of((x, result))))
    return False


def _taken(x: Instruction, one: Labelled, other: Labelled, result: list[int]) -> Labelled | None:
    (hot, labels), found = one, onehot(one[0])
    if found is None:
        return None
    indices, along = found
    values = formula_values(indices)
    if values is not None and ((values < 0) | (values >= hot.sizes[along])).any():
        return None  # the row of what is no class is 0
    number = labels[along]
    if (number in other[1]) == (number in result):
        return None
    places = [d for k, d in enumerate(labels) if k != along]
    return _at_each(x, (indices, places), number, other, result, sizes_of(one, other))


def _at_each(
    x: Instruction, index: Labelled, number: int, other: Labelled, result: list[int], sizes: dict[int, int]
) -> Labelled:
    """Elements of the other factor where its label `number` is the index, or the sums for each index."""
    (indices, places), (value, own) = index, other
    first = [d for d in (own if number in own else result) if d in places]
    order = first + [d for d in places if d not in first]
    indices = make.transpose(x, indices, list(map(places.index, order)))
    if number in own:
        rows = gather_rows(x, value, indices, own.index(number), list(map(own.index, first)))
        new = rows, order + [d for d in own if d != number and d not in first]
    else:
        value, own = summed(x, (value, own), {*result, *places})
        rest = [d for d in own if d not in places]
        rows = over(x, (value, own), order + rest, sizes)
        new = _sums_at(x, indices, rows, sizes[number], len(first)), [*first, number, *rest]
    return summed(x, new, result)


def _taken_at_pairs(x: Instruction, one: Labelled, other: Labelled, result: list[int]) -> Labelled | None:
    """The same for two one-hot arrays that are multiplied, such as an expert and a place there, and for
    weights: one index counts pairs. Where an index is no class the weight is 0."""
    sizes, (value, own) = sizes_of(one, other), other
    hots, weights = list[tuple[Labelled, int]](), list[Labelled]()
    for v, names in multiplied(one[0]):
        labels = [one[1][d] for d in names]
        if (found := onehot(v)) is None or found[0].element_type != "s32":
            weights.append((v, labels))
            continue
        number = labels.pop(found[1])
        hots.append(((found[0], labels), number))
    classes = [number for _, number in hots]
    named = {d for _, labels in (*weights, *(hot for hot, _ in hots)) for d in labels}
    is_pair = len(classes) == 2 == len({*classes} - named)
    has_all = {*one[1]} <= named | {*classes, *own, *result}
    if not (is_pair and has_all) or {(d in own) - (d in result) for d in classes} not in ({1}, {-1}):
        return None
    index = make.scalar(x, "s32", 0), list[int]()
    for (indices, places), number in hots:
        inside = limited(indices, sizes[number] - 1)
        weights.append((make.compare(x, "EQ", indices, inside), places))
        scale = make.scalar(x, "s32", sizes[number]), list[int]()
        index = on_both(inside, "add", on_both(inside, "multiply", index, scale), (inside, places))
    number, pairs = max(sizes) + 1, prod(sizes[d] for d in classes)
    if classes[0] in own:
        order = [d for d in own if d not in classes] + classes
        value = make.transpose(x, value, list(map(own.index, order)))
        value = make.resized(x, value, [*value.sizes[:-2], pairs])
        own = [*order[:-2], number]
    first = [w for w in weights if not {*w[1]} <= {*result}]
    remaining = [number] * (number not in own) + [d for d in result if d not in classes]
    sizes[number], value_of_pair = pairs, with_factors(x, (value, own), first)
    value, own = _at_each(x, index, number, value_of_pair, remaining, sizes)
    if number in own:
        k = own.index(number)
        own = [*own[:k], *classes, *own[k + 1 :]]
        value = make.resized(x, value, [sizes[d] for d in own])
    return with_factors(x, (value, own), [w for w in weights if w not in first])


def _multiply_entries(x: Instruction) -> bool:
    """A product with a matrix of entries that a scatter adds to zeros takes a row for each, and sums."""
    for one, other in both_orders(labelled(x)):
        (matrix, labels), sizes = spread_factor(one[0]), sizes_of(one, other)
        if matrix.opcode != "scatter" or matrix.operand_count > 3 or not combines_by(matrix, "add"):
            continue
        zeros, indices, entries = matrix.operands
        places = numbers_of(matrix, "scatter_dims_to_operand_dims")
        vector = indices.rank - 1
        is_each = len(places) == 2 == zeros.rank and not numbers_of(matrix, "update_window_dims")
        is_last = matrix.raw("index_vector_dim") == str(vector) and indices.element_type == "s32"
        is_wide = zeros.element_type in (x.element_type, *FLOATING_TYPES)  # other integers may wrap
        if not (is_each and is_last and is_wide and is_constant(zeros, 0)):
            continue
        found = {}
        for k, d in enumerate(places):
            label = one[1][labels[d]]
            index = place_of(x, indices, k, vector)
            found[label] = limited(index, sizes[label] - 1)
            test = make.compare(x, "EQ", index, found[label])
            entries = make.select(x, test, entries, make.zeros(x, entries.shape))
        inner, outer = sorted(found)
        if inner >= 0 or outer < 0 or outer in other[1]:
            continue
        numbers = [max(sizes) + 1 + d for d in range(vector)]
        sizes |= sizes_of((entries, numbers))
        rows = _at_each(x, (found[inner], numbers), inner, other, numbers + other[1], sizes)
        rows = on_both(x, "multiply", rows, (entries, numbers))
        return replace(x, over(x, _at_each(x, (found[outer], numbers), outer, rows, dims_of(x), sizes)))
    return False


def _sums_at(
    x: Instruction,
    indices: Instruction,
    rows: Instruction,
    count: int,
    batch: int,
) -> Instruction:
    """Sums of rows by index, apart for each place of the first `batch` dimensions of the indices."""
    rank = indices.rank
    kind = "f32" if rows.element_type in ("bf16", "f16") else rows.element_type  # as a reduction
    sizes = [*indices.sizes[:batch], count, *rows.sizes[rank:]]
    return sums_at(x, indices, make.convert(x, rows, kind), sizes, batch, range(batch))


def _take(
    x: Instruction,
    is_product: bool = False,
) -> bool:
    """A product with a one-hot array, or a sum of it (`is_product`: times values), becomes rows, or sums."""
    if x.is_dot:
        return _at_indices(x, labelled(x), dims_of(x))
    value = x.operand
    labels = dims_of(value)
    if not is_total(x):
        return False
    factors = [(value, labels), (make.scalar(x, x.element_type, 1), list[int]())]
    pair = value.operands[:2]
    is_weighted = is_masked(value) or value.opcode == "multiply"
    if is_product and (not is_weighted or any(map(is_constant, pair))):
        return False
    if is_product:
        factors = [(o, labels) for o in pair]
    elif is_weighted and min(len(spread_factor(o)[1]) for o in pair) < len(labels):
        factors = [spread_factor(o) for o in pair]
    if not is_covered(x, factors):
        return False
    return _at_indices(x, factors, [d for d in labels if d not in x.dimensions])


class _Places(Record):
    """A gather reads at these places along one dimension; along others it reads all."""

    along: int
    indices: Instruction  # Dimensions of the batch first
    batch: dict[int, int]
    """Dimensions of the array that the indices count, with those of the result, as for `x[arange(n), i]`."""
    free: list[int]  # The other dimensions of the result that the indices have

    @property
    def own(self) -> list[int]:
        """The dimensions of the result that the indices have, those of the batch first."""
        return [*self.batch.values(), *self.free]


def _indexed(x: Instruction) -> tuple[dict[int, int], dict[int, Instruction]]:
    """The dimensions of an array that dimensions of a gather count, with these; others, with their places."""
    table, indices = x.operands
    names = ("start_index_map", "slice_sizes", "offset_dims", "operand_batching_dims")
    columns, sizes, offsets, batched = (numbers_of(x, n) for n in names)
    vector = int(x.raw("index_vector_dim") or 0)
    own = others(x.rank, offsets)
    firsts = numbers_of(x, "start_indices_batching_dims")
    batch = {d: own[n - (n > vector)] for d, n in zip(batched, firsts, strict=True)}
    kind = array(indices.element_type, [x.sizes[d] for d in own])
    found = {}
    for k, d in enumerate(columns):
        size = table.sizes[d]
        if sizes[d] == size:
            continue  # it begins at 0
        is_one = sizes[d] == 1 and indices.is_concatenate and indices.operand_count == len(columns)
        column = indices.operands[k] if is_one else indices
        if column is indices and vector < indices.rank:
            column = make.part(x, indices, k, k + 1, vector)
        counts = counted_dimension(column, kind.dimensions)
        if counts is not None and size == kind.dimensions[counts]:
            batch[d] = own[counts]
        else:
            found[d] = make.reshape(x, kind, column)
    return batch, found


def _places(x: Instruction) -> _Places | None:
    batch, found = _indexed(x)
    sizes = numbers_of(x, "slice_sizes")
    dimensions = enumerate(x.operand.sizes)
    partial_dims = [d for d, n in dimensions if sizes[d] != n and d not in batch]
    if len(found) != 1 or partial_dims != [*found] or sizes[partial_dims[0]] != 1:
        return None
    own = others(x.rank, numbers_of(x, "offset_dims"))
    free = [d for d in own if d not in batch.values()]
    order = [own.index(d) for d in (*batch.values(), *free)]
    (along,) = found
    return _Places(along, make.transpose(x, found[along], order), batch, free)


def _labels(x: Instruction, own: dict[int, int]) -> list[int] | None:
    """The label of each dimension of a gather's array: its own, or the result's where all of it is read."""
    offsets = numbers_of(x, "offset_dims")
    dimensions = x.operand.sizes
    rest = others(len(dimensions), own)
    if [x.sizes[d] for d in offsets] != [dimensions[d] for d in rest]:
        return None
    names = own | dict(zip(rest, offsets, strict=True))
    return [names[d] for d in range(len(dimensions))]


def _diagonal(x: Instruction, labels: list[int]) -> Labelled | None:
    """The elements of a square matrix at equal places, gathered."""
    places = make.iota(x, array("s32", x.sizes[:1]), 0)
    return (gather_rows(x, x, places, 1, [0]), labels[:1]) if len(labels) == 2 else None


def _diagonal_alone(x: Instruction) -> bool:
    """Elements at equal places of two dimensions, or their sum, are computed without the others."""
    whole = x.operand
    remaining = dims_of(x)
    batch, along = _indexed(x) if x.opcode == "gather" else ({}, {})
    is_equal = not along and len({*batch.values()}) < len(batch)  # it reads at equal places of two
    labels = _labels(x, batch) if is_equal else None
    if is_total(x):
        dims = dims_of(whole)
        remaining = [d for d in dims if d not in x.dimensions]
        pair, values = on_diagonal(whole)
        pair = sorted(pair, key=lambda d: d in x.dimensions)
        if not pair or pair[1] in remaining:
            return False
        whole = values
        labels = [pair[0] if d == pair[1] else d for d in dims]
    if labels is None or whole.user_count > 1:
        return False
    view = View({}, _diagonal)
    found = view.whole(whole, labels)
    computed = [i for i, _ in view.done]
    spreads = (i.dimensions for i in computed if i.is_broadcast)
    if found is None or not (has(computed, "dot", "iota") or any(spreads)):
        return False
    sizes = sizes_of((x, dims_of(x)), (whole, labels))
    return replace(x, over(x, summed(x, found, remaining), remaining, sizes))


def _one_slice(x: Instruction) -> _Places | None:
    whole, *starts = x.operands
    along = [d for d, n in enumerate(x.sizes) if n != whole.sizes[d]]
    if len(along) != 1:
        return None
    d = along[0]
    size = x.sizes[d]
    indices = make.iota(x, array("s32", [size]), 0)
    first = None if starts else ranges_of(x)[d]
    if first is not None:
        indices = make.binary(x, "multiply", indices, make.scalar_like(indices, first.stride))
        start = make.scalar(x, "s32", first.start)
    else:
        start = limited(starts[d], whole.sizes[d] - size)  # XLA moves the slice inside
        start = make.convert(x, start, "s32")
    indices = make.binary(x, "add", indices, make.broadcast(x, indices.shape, start))
    return _Places(d, indices, {}, along)


def _take_first(
    x: Instruction,
    is_gathered: bool = False,
) -> bool:
    """Rows of what was computed become what is computed of rows; `is_gathered`: from several devices."""
    whole = x.operand
    places = _places(x) if x.opcode == "gather" else _one_slice(x)
    if places is None or whole.user_count > 1:
        return False
    along, batch = places.along, list(places.batch)
    rows = prod(x.sizes[d] for d in places.free)
    if rows * 4 > whole.sizes[along]:
        return False
    counts = [whole.sizes[d] for d in batch]
    indices = make.resized(x, places.indices, [*counts, rows])

    windows = []

    def last(value: Instruction, labels: list[int]) -> Labelled | None:
        if not {*batch} <= {*labels}:  # each place of the batch reads others
            return None
        if rows == 1 and (row := _one_window(value, labels, along, places.indices)) is not None:
            windows.append(row)
            return row
        found = gather_rows(x, value, indices, labels.index(along), [labels.index(d) for d in batch])
        first = [*batch, along]
        return found, [*first, *(d for d in labels if d not in first)]

    view = View({along: rows}, last)
    labels = dims_of(whole)
    found = view.whole(whole, labels)
    rows_of = {i for i, _ in view.done}
    computed = [i for i in rows_of if not rows_of.isdisjoint(i.operands)]
    is_other = has(computed, "all-gather") != is_gathered
    is_costly = windows or has(computed, "dot", "all-gather") or (computed and x.opcode == "gather")
    if found is None or is_other or not is_costly:
        return False
    if has(computed, "all-gather", "all-reduce") and formula_values(places.indices) is None:
        return False  # a device may read other rows than its neighbours
    if x.opcode != "gather":
        return replace(x, found[0])
    rest = [d for d in labels if d != along and d not in batch]
    new = make.transpose(x, found[0], [*batch, along, *rest])
    first = places.own + others(x.rank, places.own)
    new = make.resized(x, new, [x.sizes[d] for d in first])
    return replace(x, make.transpose(x, new, list(map(first.index, dims_of(x)))))


def _one_window(x: Instruction, labels: list[int], along: int, number: Instruction) -> Labelled | None:
    """The reduction of the one window whose constant number is read, as of a cumulative sum; else None."""
    given = formula_values(number) if x.opcode == "reduce-window" and x.operand_count == 2 else None
    if given is None or len({*given.flat}) != 1:  # each place of a batch reads its own
        return None
    window, place = list(window_of(x)), labels.index(along)
    w = window[place]
    window[place] = WindowDimension(1)
    start = min(max(int(given.ravel()[0]), 0), x.sizes[place] - 1) * w.stride - w.padding_low
    end = min(start + w.size, x.operand.sizes[place])
    is_plain = w.window_dilation == w.base_dilation == 1 and not w.window_reversal
    if not is_plain or {*window} != {WindowDimension(1)} or max(start, 0) >= end:
        return None
    part = make.part(x, x.operand, max(start, 0), end, place)
    return make.reduce(x, part, x.second, [place], x.to_apply), [d for d in labels if d != along]


def _map_table(x: Instruction) -> bool:
    """Values of rows that are read many times become rows of what is computed of the table."""
    table = x.operand
    if (places := _places(x)) is None:
        return False
    batch = [*range(len(places.batch))]
    along = len(batch)
    rank = along + len(places.free)
    rows = table.sizes[along]
    own, rest = x.sizes[:rank], x.sizes[rank:]
    first = [*range(rank)]
    is_plain = places.along == along and list(places.batch.items()) == [(d, d) for d in batch]
    if not is_plain or places.free != first[along:] or prod(own[along:]) < 2 * rows:
        return False
    for joined in [u for u in x.users if u.is_concatenate]:
        for user in [u for u in joined.users if u.is_dot]:
            multiply_apart(user, lambda o: o is x)
    indices = places.indices
    if (chosen := only_reader(x)) is not None and chosen.opcode == "select" and chosen.second is x:
        is_inside, labels = spread_factor(chosen.operand)
        filled = chosen.operands[2].through("broadcast", "reshape")
        is_one = not filled.sizes and is_inside.element_type == "pred"
        if is_one and {*labels} <= {*first} and rows <= (bounds(indices.element_type)[1] or 0):
            row = make.broadcast(x, with_dimensions(x.shape, [*own[:along], 1, *rest]), filled)
            table = make.concatenate(x, [table, row], along)
            is_inside = make.broadcast(x, indices.shape.with_element_type("pred"), is_inside, labels)
            last, none = (make.scalar_like(indices, k) for k in (rows - 1, rows))
            indices = make.select(x, is_inside, make.binary(x, "minimum", indices, last), none)
            x, rows = chosen, rows + 1
    sizes = dict.fromkeys(first[along:], 1) | {along: rows}
    whole = make.resized(x, table, [*own[:along], *sizes.values(), *rest])
    view = View(
        sizes, lambda value, labels: (whole, labels) if value is x and labels[:rank] == first else None
    )
    found = {}
    readers = list(x.users)
    for y in readers:
        new = view.whole(y, dims_of(y)) if y not in found and y.sizes[:rank] == own else None
        if new is not None:
            found[y] = new[0]
            readers += y.users
    ends = [y for y in found if y.is_root or any(u not in found for u in y.users)]
    for y in ends:
        small = make.resized(y, found[y], [*own[:along], rows, *y.sizes[rank:]])
        replace(y, gather_rows(y, small, indices, along, batch))
    return bool(ends)


def _rows_of(x: Instruction) -> tuple[Numbers, int] | None:
    """The whole rows that a scatter writes, or a gather reads, where they count, and their dimension."""
    is_scatter = x.opcode == "scatter"
    names = ("inserted_window_dims", "scatter_dims_to_operand_dims", "update_window_dims")
    names = names if is_scatter else ("collapsed_slice_dims", "start_index_map", "offset_dims")
    table = x.operand.shape
    rows = (x.operands[2] if is_scatter else x).shape
    firsts = [numbers_of(x, n) for n in names]
    others = [d for d in range(table.rank) if (d,) != firsts[0]]
    is_plain = firsts[0] == firsts[1] and firsts[2] == tuple(others) and rows.rank == table.rank
    if not is_plain or len(others) != rows.rank - 1 or x.operand_count > 3:
        return None
    found = numbers(x.second)
    whole = all(rows.dimensions[d] == table.dimensions[d] for d in others)
    return (found, firsts[0][0]) if found is not None and whole else None


def _segments(x: Instruction) -> bool:
    """Sums of equal segments become a sum over an axis."""
    found, along = _rows_of(x) or (None, 0)
    updates = x.operands[2]
    if found is None or along or found.first or found.starts or found.step != 1 or not combines_by(x, "add"):
        return False
    count, *rest = x.sizes
    if found.repeat < 2 or updates.sizes[0] != count * found.repeat:
        return False
    blocks = make.resized(x, updates, [count, found.repeat, *rest])
    return replace(x, make.binary(x, "add", total_of(x, blocks, [1]), x.operand))


def _window(x: Instruction) -> bool:
    """Rows that follow each other, or every n-th row, are written or read without indices."""
    found, along = _rows_of(x) or (None, 0)
    if found is None or found.repeat != 1 or found.step < 1:
        return False
    table = x.operand
    rows = x.operands[2] if x.opcode == "scatter" else x
    sizes = rows.sizes
    size = table.sizes[along]
    last = None if found.starts else found.first + (sizes[along] - 1) * found.step
    if last is not None and (last >= size or found.first < 0):
        return False
    if found.step == 1:
        starts = starts_at(x, len(sizes), found.start(x, x.second.element_type), along)
        old = make.dynamic_slice(x, table, starts, sizes)
        if x.opcode == "gather":
            return replace(x, old)
        update = _combined(x, old, rows)
        return update is not None and replace(x, make.dynamic_update_slice(x, table, update, starts))
    if last is None:
        return False
    if x.opcode == "gather":
        return replace(x, make.part(x, table, found.first, last + 1, along, found.step))
    places = found.first, size - last - 1, along, found.step - 1
    spread_out = make.padded(x, rows, *places)
    if combines_by(x, "add"):
        return replace(x, make.binary(x, "add", table, spread_out))
    if x.to_apply.root is not x.to_apply.parameters[1]:
        return False
    given = rows.shape.with_element_type("pred")
    ones = make.broadcast(x, given, make.add(x, "constant", array("pred"), payload="true"))
    return replace(x, make.select(x, make.padded(x, ones, *places), spread_out, table))


def _combined(
    x: Instruction,
    old: Instruction,
    new: Instruction,
) -> Instruction | None:
    root = x.to_apply.root
    if root.is_parameter:
        return new if root.parameter_number else old
    if root.operand_count != 2 or not combines_by(x, root.opcode):
        return None
    first, second = ((old, new)[o.parameter_number] for o in root.operands)
    return make.binary(x, root.opcode, first, second)


def _scatter_stacked(x: Instruction) -> bool:
    """Sums over the same segments become one, of values with their columns side by side."""
    segments = _summed_rows(x)
    if not x.users or segments is None:
        return False
    same = [x]
    for u in x.second.users:
        fits = u.users and u.opcode == "scatter" and u.second is x.second
        fits = fits and _summed_rows(u) == segments
        if fits and not any(depends_on(u, v) or depends_on(v, u) for v in same):
            same.append(u)
    if len(same) < 2:
        return False

    def joined(k: int) -> Instruction:
        parts = []
        for u in same:
            value = u.operands[k]
            sizes = value.sizes[: value.rank - len(numbers_of(u, "update_window_dims"))]
            sizes += (value.element_count // prod(sizes),)
            parts.append(make.resized(x, value, sizes))
        return make.concatenate(x, parts, parts[0].rank - 1)

    init = joined(0)
    updates = joined(2)
    operands = [init, x.second, updates]
    new = make.copy_of(x, operands, init.shape, update_window_dims=[updates.rank - 1])
    start = 0
    for u, part in zip(same, init.operands, strict=True):
        end = start + part.sizes[-1]
        columns = make.part(x, new, start, end, init.rank - 1)
        u.replace_all_uses_with(make.reshape(x, u.shape, columns))
        start = end
    return True


def _summed_rows(x: Instruction) -> object:
    """The segments of a sum whose rows are the last dimensions of what it reads and writes; else None."""
    window = numbers_of(x, "update_window_dims")
    places = numbers_of(x, "inserted_window_dims") + numbers_of(x, "input_batching_dims")
    updates = x.operands[-1].shape
    count, own = (s.rank - len(window) for s in (x.shape, updates))
    is_first = sorted(places) == [*range(count)]
    is_last = window == tuple(range(own, updates.rank))
    is_whole = x.sizes[count:] == updates.dimensions[own:]
    if not (is_first and is_last and is_whole and x.operand_count == 3 and combines_by(x, "add")):
        return None
    form = x.attributes.without("to_apply", "metadata", "update_window_dims")
    return form, x.element_type, x.sizes[:count]


def _masked_sum(x: Instruction) -> tuple[Instruction, Instruction | None, int] | None:
    """The labels and values of a sum over all places with one label, and this; None values: a count."""
    value = x.operand
    pairs: list[tuple[Instruction, Instruction | None]] = [(value, None)]
    if is_masked(value):
        pairs = [(value.operand, value.second)]
    elif value.opcode == "multiply":
        pairs = [(a, b) for a, b in both_orders(value.operands)]
    for mask, summands in pairs if is_total(x) else ():
        test, dims = spread(mask)
        rank = test.rank
        is_plain = dims == [*range(rank), *[None] * (value.rank - rank)] and rank > 0
        if test.raw("direction") != "EQ" or not is_plain or tuple(x.dimensions) != tuple(range(rank)):
            continue
        for labels, number in both_orders(test.operands):
            if (n := integer_of(spread(number)[0])) is not None:
                return labels, summands, n
    return None


def _sum_segments(x: Instruction) -> bool:
    """Sums that a mask for each label takes become one sum over segments."""
    own = _masked_sum(x)
    if own is None or not x.users:
        return False
    labels, summands, _ = own
    readers = reach([labels], lambda i: [u for u in i.users if not i.is_reduce and u.opcode in _MASKING])
    equal = (r for r in readers if r.is_reduce and r.shape == x.shape and r.users)
    found = [(r, other[2]) for r in equal if (other := _masked_sum(r)) and other[:2] == own[:2]]
    numbers = {n for _, n in found}
    if len(numbers) < _FEWEST or min(numbers) < 0 or max(numbers) >= 2 * len(numbers):
        return False
    rows = summands or make.broadcast(x, x.operand.shape, make.scalar(x, x.element_type, 1))
    sums = _sums_at(x, labels, rows, max(numbers) + 1, 0)
    for r, n in found:
        replace(r, place_of(r, sums, n))
    return True


_FEWEST = 4  # masks that are worth one sum over segments
_MASKING = values("compare broadcast reshape convert multiply select reduce")
_STEPS = 64  # places in a window that are written one by one


def _slice_windows(x: Instruction) -> bool:
    """A reduction, or weighted sum, of windows at numbers that count combines a slice for each place."""
    total = _weighted(x) if x.is_dot else x
    if total is None:
        return False
    value, root = total.operand, total.to_apply.root
    along, *others = total.dimensions
    count = value.sizes[along]
    is_plain = total.operand_count == 2 and not others and combines_by(total, root.opcode)
    if not is_plain or not is_neutral(total, total.second):
        return False
    if not 1 < count <= _STEPS or not has(origins(value), "gather"):
        return False
    parts = [_of_windows(value, along, k) for k in range(count)]
    terms = [make.reshape(x, x.shape, part) for part in parts if part is not None]
    return len(terms) == count and replace(x, fold(x, root.opcode, terms))


def _weighted(x: Instruction) -> Instruction | None:
    """The product of an array and a vector as the sum of an elementwise product; None for another product."""
    for (value, labels), weights in both_orders(labelled(x)):
        if weights[1] == [-1] and value.element_type == x.element_type:
            weighted = make.binary(x, "multiply", value, over(value, (weights[0], [labels.index(-1)])))
            return total_of(x, weighted, [labels.index(-1)])
    return None


def _of_windows(
    value: Instruction,
    along: int,
    k: int,
) -> Instruction | None:
    """One place of all windows, a slice of the table of a gather; None where no gather reads such windows."""
    found = []

    def last(x: Instruction, labels: list[int]) -> Labelled:
        if x.opcode == "gather" and (gathered := _gathered_rows(x)) is not None:
            x, order = gathered
            labels = [labels[order.index(d)] for d in range(x.rank)]
        d = labels.index(along)
        if (part := _slice_at(x, d, k)) is None:
            return make.part(x, x, k, k + 1, d), labels
        places, rows = part
        (other,) = {*places.free} - {d}
        rest = iter(numbers_of(x, "offset_dims"))
        dims = range(rows.rank)
        found.append((rows, [labels[other if t == places.along else next(rest)] for t in dims]))
        return found[-1]

    new = View({along: 1}, last).whole(value, dims_of(value))
    return new[0] if new is not None and found else None


def _slice_at(
    x: Instruction,
    d: int,
    k: int,
) -> tuple[_Places, Instruction] | None:
    """What a gather reads at one place of a dimension, if that is evenly spaced; else None."""
    places = _places(x) if x.opcode == "gather" else None
    if places is None or len(places.free) != 2 or d not in places.free or places.batch:
        return None
    values, table = formula_values(places.indices), x.operand
    if values is None or not values.size or len(numbers_of(x, "offset_dims")) != table.rank - 1:
        return None
    column = values.take(k, places.free.index(d)).tolist()
    start, end = column[0], column[-1] + 1
    step = max([1, *(after - before for before, after in pairwise(column))])
    is_within = start >= 0 and end <= table.sizes[places.along]
    if not is_within or column != [*range(start, end, step)]:
        return None
    return places, make.part(x, table, start, end, places.along, step)


def _write_at_once(x: Instruction) -> bool:
    if any(u.opcode == x.opcode and u.operand is x for u in x.users):
        return False
    rows = list[tuple[int, Instruction]]()
    reads = list[tuple[Instruction, int]]()
    first, along = x, (row_written(x) or (0,))[0]
    while (row := row_written(first)) is not None and row[0] == along:
        slices = [] if first is x else [u for u in first.users if u.is_slice]
        if first is not x and first.user_count > len(slices) + 1:
            break
        reads += ((u, len(rows)) for u in slices)
        rows.append(row[1:])
        first = first.operand
    read = {u: part for u, k in reads if (part := _row_read(u, rows[k:], along)) is not None}
    rows.sort(key=lambda row: row[0])
    is_apart = any(start + part.sizes[along] != end for (start, part), (end, _) in pairwise(rows))
    if len(rows) < 3 or is_apart or len(read) < len(reads):
        return False
    parts = [part for _, part in rows]
    whole = Together(parts, is_flat=False)
    sizes = list(x.sizes)
    if len({part.shape for part in parts}) == 1 and whole.join(parts):  # they are computed at once, too
        sizes[along] = sum(p.sizes[along] for p in parts)
        joined = whole.over_all(parts[0])
        joined = moved(x, joined, 0, along) if along else joined
        joined = make.resized(x, joined, sizes)
    else:
        joined = make.concatenate(x, parts, along)
    starts = starts_at(x, len(sizes), make.scalar(x, "s32", rows[0][0]), along)
    new = make.dynamic_update_slice(x, first, joined, starts)
    for u, part in read.items():
        u.replace_all_uses_with(part)
    return replace(x, new)


def _row_read(
    u: Instruction,
    rows: Sequence[tuple[int, Instruction]],
    along: int,
) -> Instruction | None:
    """The rows that a slice reads of those written so far, or None."""
    place = ranges_of(u)[along]
    fits = (part for start, part in rows if (start, part.shape) == (place.start, u.shape))
    return next(fits, None) if place.stride == 1 else None


def _scattered_rows(x: Instruction) -> Instruction | None:
    """A scatter of rows for one of windows, without dimensions that a window fills or leaves at one."""
    table, indices, updates, *more = x.operands
    names = ("input_batching_dims", "update_window_dims", "scatter_dims_to_operand_dims")
    batch, window, along = (numbers_of(x, name) for name in names)
    rank = indices.rank - 1
    if more or x.raw("inserted_window_dims") != "{}":
        return None
    if x.raw("index_vector_dim") != str(rank):
        return None
    places = zip(others(table.rank, batch), window, strict=True)
    taken = {d: w for d, w in places if d in along and updates.sizes[w] == 1}
    columns = _columns(indices)
    chosen = [along[k] for k in columns]
    if not chosen or not taken.keys() >= {*chosen}:
        return None
    parts = [make.part(x, indices, k, k + 1, rank) for k in columns]
    rows = make.reshape(x, without(updates.shape, [*taken.values()]), updates)
    rest = [w for w in range(updates.rank) if w not in taken.values()]
    return make.copy_of(
        x,
        [table, make.concatenate(x, parts, rank), rows],
        update_window_dims=[rest.index(w) for w in window if w in rest],
        inserted_window_dims=[*taken],
        scatter_dims_to_operand_dims=chosen,
    )


def _index_rows(x: Instruction) -> bool:
    """A gather or scatter of windows of whole rows, or a scatter of their elements, becomes one of rows."""
    if x.opcode == "scatter":
        new = _scattered_rows(x)
        return replace(x, new) if new is not None else _scatter_elements(x)
    rows = None if prod(numbers_of(x, "slice_sizes")) in numbers_of(x, "slice_sizes") else _gathered_rows(x)
    return rows is not None and replace(x, make.transpose(x, *rows))


def _gathered_rows(x: Instruction) -> tuple[Instruction, list[int]] | None:
    """A gather of whole rows in place of one of windows of them, and how it is transposed."""
    table, indices = x.operands
    sizes = numbers_of(x, "slice_sizes")
    rank = indices.rank - 1
    whole = [d for d, n in enumerate(table.sizes) if sizes[d] == n]
    moved = [(k, d) for k, d in enumerate(numbers_of(x, "start_index_map")) if d not in whole]
    is_plain = x.raw("collapsed_slice_dims") == "{}" and not numbers_of(x, "operand_batching_dims")
    if not is_plain or x.raw("index_vector_dim") != str(rank):
        return None
    if len(moved) != 1 or len(whole) + 1 < table.rank:
        return None
    ((column, along),) = moved
    count = sizes[along]
    if count == 1:
        return None
    starts = limited(place_of(x, indices, column, rank), table.sizes[along] - count)
    shape = with_dimensions(starts.shape, [*starts.sizes, count])
    first = make.broadcast(x, shape, starts, range(rank))
    rows = gather_rows(x, table, make.binary(x, "add", first, make.iota(x, shape, rank)), along)
    offsets = numbers_of(x, "offset_dims")
    order = others(x.rank, offsets)
    order += [offsets[d] for d in (along, *whole)]
    return rows, [order.index(p) for p in range(x.rank)]


def _scatter_elements(x: Instruction) -> bool:
    """A scatter of elements of which one index counts up, and the others are equal along a whole row."""
    table, indices, *updates = x.operands
    along = numbers_of(x, "scatter_dims_to_operand_dims")
    inserted = numbers_of(x, "inserted_window_dims")
    columns = indices.operands if indices.is_concatenate else []
    is_of_elements = len(inserted) == table.rank == len(columns) == len(along) > 1
    if not is_of_elements or len(updates) > 1 or x.raw("index_vector_dim") != str(indices.rank - 1):
        return False
    for k, d in reversed([*enumerate(map(counted, columns))]):  # where several count, the rows that are minor
        others = [*columns[:k], *columns[k + 1 :]]
        size = table.sizes[along[k]]
        places = indices.sizes[:-1]
        if d is None or places[d : d + 1] != (size,) or not all(_is_repeated(c, d) for c in others):
            continue
        rows = [place_of(x, c, 0, d) for c in others]
        joined = make.concatenate(x, rows, indices.rank - 2)
        new = make.copy_of(
            x,
            [table, joined, *updates],
            indices_are_sorted=None,
            update_window_dims=[d],
            inserted_window_dims=[n for n in inserted if n != along[k]],
            scatter_dims_to_operand_dims=[n for n in along if n != along[k]],
            index_vector_dim=indices.rank - 2,
        )
        return replace(x, new)
    return False


def _is_repeated(x: Instruction, along: int) -> bool:
    if x.opcode == "iota":
        return counted(x) != along
    if x.is_broadcast:
        return along not in x.dimensions or _is_repeated(x.operand, x.dimensions.index(along))
    if x.is_reshape:
        below = x.operand
        is_same = below.sizes[: along + 1] == x.sizes[: along + 1]
        return is_same and _is_repeated(below, along)
    return x.opcode in ELEMENTWISE_OPCODES and all(_is_repeated(o, along) for o in x.operands)


def _columns(indices: Instruction) -> list[int]:
    """The columns of clamped indices that the limits do not make 0; none for others."""
    low, high = map(formula_values, indices.operands[::2]) if indices.opcode == "clamp" else (None, None)
    if low is None or high is None or not high.ndim:  # a scalar limits all
        return []
    return [k for k in range(high.shape[-1]) if (low | high)[..., k].any()]


_SHORT = 256  # rows: a row of 128 floats took 2.8 ns by its tile, 1.2 by a product of so many (libtpu, v5e)
_OF_BATCH = 512  # elements: one took 5.7 ns by its tile, 3.4 by a product of so many, 5.2 by one of 768
_LANES = 128  # fewer are padded, so that products read another dimension as the minor one
_FEW = 1024  # segments: a sum over so many took 0.4 of its scatter's time (libtpu, v5e)
_READING = {
    "offset_dims": "update_window_dims",
    "collapsed_slice_dims": "inserted_window_dims",
    "start_index_map": "scatter_dims_to_operand_dims",
    "operand_batching_dims": "input_batching_dims",
    "start_indices_batching_dims": "scatter_indices_batching_dims",
}  # of a gather, and of a scatter


def _onehot(
    x: Instruction,
    indices: Instruction,
    classes: int,
    places: Ints,
) -> Labelled:
    """A one-hot array of indices with these labels; that of its classes is -1."""
    if indices.element_type in SMALL:
        indices = make.convert(indices, indices, "s32")
    rank = indices.rank
    shape = array(indices.element_type, [*indices.sizes, classes])
    indices = make.broadcast(x, shape, indices, range(rank))
    return make.compare(x, "EQ", indices, make.iota(x, shape, rank)), [*places, -1]


def _product(
    x: Instruction,
    hot: Labelled,
    values: Labelled,
    result: list[int],
) -> Instruction:
    x.attributes = x.attributes.updated(operand_precision="{highest,highest}")
    return over(x, contracted(x, hot, values, result), result, sizes_of(hot, values))


def _multiply_by_onehot(x: Instruction) -> bool:
    """A gather along a short dimension becomes a product with a one-hot array, without whole tiles."""
    table = x.operand
    found = _places(x)
    if found is None or table.rank == 1:
        return False
    classes = table.sizes[found.along]
    labels = _labels(x, {**found.batch, found.along: -1})
    if labels is None or classes > (_OF_BATCH if len(labels) == len(found.batch) + 1 else _SHORT):
        return False
    hot = _onehot(x, limited(found.indices, classes - 1), classes, found.own)
    return replace(x, _product(x, hot, (table, labels), dims_of(x)))


def _choose_rows(
    x: Instruction,
    is_summed: bool = False,
) -> bool:
    """A scatter of one row to each place becomes a choice; `is_summed`: sums become a one-hot product."""
    opcode, root = ("add" if is_summed else "parameter"), x.to_apply.root
    if not combines_by(x, opcode) or root is x.to_apply.parameter:
        return False
    form = _scattered_rows(x) or x
    table, indices, updates = form.operands
    names = {new: numbers_of(form, old) for new, old in _READING.items()}
    sizes, vector = slice_sizes_of(form), int(form.raw("index_vector_dim") or 0)
    read = indexed(x, "gather", [table, indices], updates.shape, vector, (), slice_sizes=sizes, **names)
    if any(sizes[d] == table.sizes[d] for d in names["start_index_map"]):
        return False  # the scatter leaves out what does not begin at 0
    found = _places(read)
    labels = _labels(read, {**found.batch, found.along: -1}) if found is not None else None
    if found is None or labels is None or bool(found.free) != is_summed:
        return False
    classes = table.sizes[found.along]
    hot = _onehot(x, found.indices, classes, found.own)
    own = updates, dims_of(updates)
    if is_summed:
        is_product = x.element_type in FLOATING_TYPES or len(labels) == len(found.batch) + 1
        is_short = is_product and classes <= _FEW
        return is_short and replace(x, make.binary(x, "add", table, _product(x, hot, own, labels)))
    mask, rows = (over(v[0], v, labels, sizes_of(hot, own)) for v in (hot, own))
    is_read = table.sizes[-1] % _LANES and any(u.opcode != "tuple" for u in x.users)
    return bool(is_read) and replace(x, make.select(x, mask, rows, table))


ROWS = {
    "diagonal-alone": Rewriting("gather reduce", _diagonal_alone),
    "take-first": Rewriting("gather slice dynamic-slice", _take_first),
    "slice-before-the-gather": Rewriting(
        "gather slice dynamic-slice", partial(_take_first, is_gathered=True)
    ),
    "map-the-table": Rewriting("gather", _map_table),
    "take-not-onehot": Rewriting("dot reduce", _take),
    "sum-over-the-entries": Rewriting("dot", _multiply_entries),
    "onehot-not-take": Rewriting("gather", _multiply_by_onehot, "tpu"),
    "onehot-not-scatter": Rewriting("scatter", partial(_choose_rows, is_summed=True), "tpu"),
    "where-not-scatter": Rewriting("scatter", _choose_rows, "tpu"),
    "pick-the-label": Rewriting("reduce", partial(_take, is_product=True)),
    "reshape-not-segments": Rewriting("scatter", _segments),
    "index-all-rows": Rewriting("scatter gather", _index_rows, "tpu"),
    "window-not-scatter": Rewriting("scatter gather", _window),
    "slice-the-windows": Rewriting("reduce dot", _slice_windows),
    "segment-sum-not-masks": Rewriting("reduce", _sum_segments),
    "one-segment-sum": Rewriting("scatter", _scatter_stacked, "gpu"),
    "write-at-once": Rewriting("dynamic-update-slice scatter", _write_at_once),
    "update-the-rows": Rewriting("scatter", add_to_rows),
    "choose-what-is-written": Rewriting("select", choose_written),
    "write-the-row": Rewriting("select add", write_row),
}
