"""Windows, transforms, cumulative sums and sorts before optimizations, with the same values."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, product
from math import inf, nan, prod

import numpy as np

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import (
    FLOATING_TYPES,
    Computation,
    Instruction,
    Instructions,
    Ints,
    Shape,
    grouped,
    reach,
    values,
)
from hlofuse.ir.attributes.window import SliceRange, SliceRanges, Window, WindowDimension
from hlofuse.matching.key import Keys
from hlofuse.passes.common import make
from hlofuse.passes.common.index_vectors import counted_loop
from hlofuse.passes.common.literals import Elements, Value, bounds, rounded, scalar_of
from hlofuse.passes.common.shapes import (
    array,
    inserted,
    labels_of,
    numbers_of,
    others,
    ranges_of,
    window_of,
    with_dimensions,
)
from hlofuse.passes.sort.topk import comparator
from .contracting import (
    Labelled,
    View,
    contracted,
    cumulated,
    multiplied,
    on_both,
    over,
    total_of,
    with_factors,
)
from .matching import MIN_ELEMENTS, combines_by, is_constant, is_total, origins, source
from .written import (
    Rewriting,
    counted_along,
    dims_of,
    fold,
    formula_values,
    moved,
    replace,
    spread,
    starts_at,
    sums_at,
    written_before,
)

_SUMS = ("add", "subtract")
_NEUTRAL = {
    "add": 0,
    "multiply": 1,
    "and": True,
    "or": False,
}


def is_neutral(x: Instruction, value: Instruction) -> bool:
    """True for a start that may be combined once more, by what `x` combines with."""
    kind = x.element_type
    starts = {**_NEUTRAL, **dict(zip(("maximum", "minimum"), bounds(kind), strict=True))}
    root = x.to_apply.root
    start = starts.get(root.opcode)
    given = scalar_of(source(value))
    return combines_by(x, root.opcode) and given is not None and given == start


_OF_GRADIENT = values("pad select-and-scatter")
"""Operations by which the gradient of a maximum reads what the maximum does."""


def _by_dimension(x: Instruction) -> bool:
    """A window over several dimensions becomes one over each, those that leave out most places first."""
    window = list(window_of(x))
    along = [d for d, w in enumerate(window) if w.size > 1]
    if x.operand_count != 2 or not is_neutral(x, x.second):
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
    sizes = [*x.operand.sizes]
    value = x.operand
    for taken in ({*range(len(window))} - {*others}, *({d} for d in others)):
        own = tuple(w if d in taken else WindowDimension(1) for d, w in enumerate(window))
        sizes = [x.sizes[d] if d in taken else n for d, n in enumerate(sizes)]
        shape = with_dimensions(x.shape, sizes)
        value = make.reduce_window(x, shape, [value, x.second], x.to_apply, Window(own))
    return replace(x, value)


_MOST_TAPS = 32  # taps of a filter whose products are written one by one


def _add_shifts(x: Instruction) -> bool:
    """A convolution of each channel by itself becomes a sum: a shifted array times a number for each tap."""
    window = list(window_of(x))
    labels = labels_of(x)
    (value, filters), feature = x.operands, labels.lhs.index("f")
    channels = x.sizes[feature]
    taps = prod(w.size for w in window)
    is_plain = labels.lhs == labels.output and x.raw("batch_group_count", "1") == "1"
    is_each = channels == value.sizes[feature] == filters.element_count / taps
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
            span = (x.sizes[d] - 1) * w.stride
            shifted = make.part(x, shifted, start, start + span + 1, d, w.stride)
            factor = make.part(x, factor, n, n + 1, e)
        factor = make.resized(x, factor, [channels])
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
    channels = x.operand.sizes[labels.lhs.index("f")]
    filters_of_each = x.second.element_count // taps
    is_each = channels in (1, filters_of_each) and x.raw("feature_group_count", "1") == str(channels)
    is_plain = is_plain and x.raw("batch_group_count", "1") == "1"
    if not (is_plain and is_each and 0 < len(window) < 4) or x.element_type != "f32":
        return False
    spatial = [*map(str, range(len(window)))]
    order = [labels.lhs.index(k) for k in ("b", "f", *spatial)]
    value = make.transpose(x, x.operand, order)
    filters = make.transpose(x, x.second, [labels.rhs.index(k) for k in ("o", "i", *spatial)])
    along = range(2, value.rank)
    filters = make.add(x, "reverse", filters.shape, [filters], dimensions=along)
    for d, w in zip(along, window, strict=True):
        value = make.padded(x, value, w.padding_low, w.padding_high, d, w.base_dilation - 1)
    sizes = [_smooth(value.sizes[d]) for d in along]
    spectra = []
    for y in (value, filters):
        for d, size in zip(along, sizes, strict=True):
            y = make.padded(x, y, 0, size - y.sizes[d], d)
        shape = array("c64", [*y.sizes[:-1], sizes[-1] // 2 + 1])
        spectra.append(make.add(x, "fft", shape, [y], fft_type="RFFT", fft_length=sizes))
    first = spectra[0], [0, 1 if channels > 1 else -1, *along]
    both, _ = on_both(spectra[0], "multiply", first, (spectra[1], [1, -2, *along]))
    pairs = [value.sizes[0], filters_of_each]
    found = make.resized(x, both, [*pairs, *spectra[1].sizes[2:]])
    shape = array("f32", [*pairs, *sizes])
    found = make.add(x, "fft", shape, [found], fft_type="IRFFT", fft_length=sizes)
    for d, w in zip(along, window, strict=True):
        end = value.sizes[d]
        found = make.part(x, found, w.size - 1, end, d)
    back = [order.index(labels.lhs.index(k)) for k in labels.output]
    return replace(x, make.transpose(x, found, back))


_MIRRORING = values("add subtract multiply divide negate select exponential convert")


def _mirrors(
    x: Instruction,
    axes: Ints,
    last: int,
    written: dict[Instruction, Elements],
) -> bool:
    """True for a spectrum of which one half mirrors the other along these dimensions, as that of real numbers
    does. A real result has no part of those in the first and middle places of the `last` that do not."""
    if not axes:
        value = x.operand if x.opcode == "convert" else x
        return value.element_type in FLOATING_TYPES
    if (given := formula_values(x, written)) is not None:
        return _is_mirrored(given, axes, last)
    if x.opcode == "multiply":
        rest = [f for f in multiplied(x) if formula_values(f[0], written) is None]
        given = formula_values(x, written | {v: np.ones(v.sizes) for v, _ in rest})
        places = [(v, {d: k for k, d in enumerate(own)}) for v, own in rest]
        if given is not None:
            return _is_mirrored(given, axes, last) and all(
                _mirrors(v, [at[d] for d in axes if d in at], at.get(last, -1), written) for v, at in places
            )
    if x.opcode in _MIRRORING or (x.opcode in ELEMENTWISE_OPCODES and x.element_type in FLOATING_TYPES):
        return all(_mirrors(o, axes, last, written) for o in x.operands)
    if x.is_broadcast:
        own = [x.dimensions.index(d) for d in axes if d in x.dimensions]
        return _mirrors(x.operand, own, own[-1] if last in x.dimensions else -1, written)
    return _is_of_real(x) and sorted(axes) == dims_of(x)[-len(numbers_of(x, "fft_length")) :]


def _is_mirrored(given: Elements, axes: Ints, last: int) -> bool:
    differs = given != np.roll(np.flip(given, tuple(axes)), 1, axes).conj()
    if last in axes:
        size = given.shape[last]
        differs = np.delete(differs, [0, *[size // 2] * (size % 2 == 0)], last)
    return not differs.any()


def _is_of_real(x: Instruction) -> bool:
    if x.raw("fft_type") != "FFT" or x.operand.opcode != "convert":
        return False
    return x.operand.operand.element_type in FLOATING_TYPES


def _real_transform(x: Instruction) -> bool:
    """The half that is read of a transform of real numbers, and a real result of one and back."""
    whole = x.operand
    is_back = x.opcode == "real"
    if is_back and whole.raw("fft_type") != "IFFT":
        return False
    spectrum = whole.operand if is_back else whole
    labels = dims_of(spectrum)
    along = labels[-1]
    if not is_back and (cut := [d for d in labels if x.sizes[d] < whole.sizes[d]]):
        along = cut[0]
    half = {along: spectrum.sizes[along] // 2 + 1}
    axes = labels[-len(numbers_of(whole, "fft_length")) :] if is_back else []
    if is_back and not _mirrors(spectrum, axes, along, written_before(x)):
        return False
    if not is_back and ranges_of(x)[along].limit > half[along]:
        return False
    found = []

    def last(value: Instruction, own: list[int]) -> Labelled:
        sizes = [half.get(d, n) for d, n in zip(own, value.sizes, strict=True)]
        if own[-1] != along or not _is_of_real(value):
            return make.slice_of(value, value, [0] * len(own), sizes), own
        shape = with_dimensions(value.shape, sizes)
        new = make.copy_of(value, [value.operand.operand], shape, fft_type="RFFT")
        found.append(new)
        return new, own

    part = View(half, last).whole(spectrum, labels)
    if part is None or not found:
        return False
    if is_back:
        return replace(x, make.copy_of(whole, part[:1], x.shape, fft_type="IRFFT"))
    return replace(x, make.copy_of(x, part[:1]))


def _signed(x: Instruction, sign: int = 1) -> Iterator[tuple[Instruction, int]]:
    """The terms of sums and differences, each with its sign."""
    for place, term in enumerate(x.operands):
        own = -sign if x.opcode == "negate" or (place and x.opcode == "subtract") else sign
        if term.opcode in (*_SUMS, "negate") and term.user_count == 1:
            yield from _signed(term, own)
        else:
            yield term, own


def _scaled_transform(x: Instruction) -> tuple[Instruction, list[Labelled]] | None:
    """The Fourier transform, or its real part, in a product, and factors that scale all it reads at once."""
    factors = multiplied(x) if x.user_count == 1 else []
    found = [f for f in factors if f[0].through("real").opcode == "fft"]
    if len(found) != 1 or found[0][1] != dims_of(x) or found[0][0].element_type != x.element_type:
        return None
    ((value, _),) = found
    whole = value.through("real")
    batch, kind = range(x.rank - len(numbers_of(whole, "fft_length"))), whole.operand.element_type
    scales = [f for f in factors if f[0] is not value]
    kinds = (kind, *FLOATING_TYPES) if kind[0] == "c" else (kind,)
    is_scaled = all({*own} <= {*batch} and v.element_type in kinds for v, own in scales)
    return (value, scales) if is_scaled and value.user_count == 1 else None


def _transform_once(x: Instruction) -> bool:
    """Fourier transforms that are added, or their real parts, become one transform of what is added."""
    keys, terms = Keys(), list(_signed(x))
    transforms = [(pair, *scaled) for pair in terms if (scaled := _scaled_transform(pair[0]))]
    groups = grouped(((v.opcode, keys.operation(v.through("real"))), f) for f in transforms for v in f[1:2])
    found = max(groups.values(), key=len, default=[])
    if len(found) < 2 or any(u.opcode in _SUMS for u in x.users):
        return False

    def total(values: list[tuple[Instruction, int]]) -> Instruction:
        return fold(x, "add", [v if sign > 0 else make.unary(x, "negate", v) for v, sign in values])

    whole = found[0][1].through("real")
    spectra = list[tuple[Instruction, int]]()
    for (_, sign), value, scales in found:
        below = value.through("real").operand
        spectra.append((with_factors(below, (below, dims_of(below)), scales)[0], sign))
    new = make.copy_of(whole, [total(spectra)])
    new = new if found[0][1] is whole else make.unary(x, "real", new, x.shape)
    taken = [pair for pair, *_ in found]
    return replace(x, total([(new, 1), *(pair for pair in terms if pair not in taken)]))


def _cumulated(x: Instruction) -> tuple[int, bool] | None:
    """The dimension along which a window of all elements is cumulated, and whether from the first on."""
    window = list(window_of(x))
    along = [d for d, w in enumerate(window) if w.size > 1]
    if len(along) != 1:
        return None
    w = window[along[0]]
    n = x.sizes[along[0]]
    is_plain = w.size == n and {w.padding_low, w.padding_high} == {0, n - 1} and w.stride == 1
    return (along[0], w.padding_low > 0) if is_plain else None


def _cumulate_by_product(x: Instruction) -> bool:
    """A cumulative sum over a short dimension becomes a product with a triangle of ones."""
    found = _cumulated(x)
    if found is None or x.element_type not in FLOATING_TYPES or not combines_by(x, "add"):
        return False
    d, is_forward = found
    n = x.sizes[d]
    if n > 512 or x.element_count < MIN_ELEMENTS or not is_constant(x.second, 0):
        return False
    square = array("s32", [n, n])
    direction = "LE" if is_forward else "GE"
    numbers_down, numbers_across = (make.iota(x, square, d) for d in (0, 1))
    test = make.compare(x, direction, numbers_down, numbers_across)
    ones = make.convert(x, test, x.element_type)
    result = dims_of(x)
    a = (x.operand, [-1 if k == d else k for k in result])
    b = (ones, [-1, d])
    return replace(x, over(x, contracted(x, a, b, result)))


_LEAST_ROW = 32  # elements of a row: a loop over shorter ones was slower (jaxlib 0.11.1, CPU)


def _cumulate_by_rows(x: Instruction) -> bool:
    """A cumulative sum over rows becomes a loop that adds a row in each iteration."""
    found = _cumulated(x)
    root = x.to_apply.root
    if found is None or not combines_by(x, root.opcode):
        return False
    d, is_forward = found
    if prod(x.sizes[d + 1 :]) < _LEAST_ROW:
        return False
    given = moved(x, x.operand, d, 0)  # a scan takes rows of the first dimension
    n = given.sizes[0]
    row = [1, *given.sizes[1:]]
    start = make.broadcast(x, with_dimensions(x.shape, row), x.second)
    whole = make.broadcast(x, given.shape, x.second)

    def body(number: Instruction, state: Instructions) -> Instructions:
        total, values, found_rows = state
        last = make.scalar(number, "s32", n - 1)
        place = number if is_forward else make.binary(number, "subtract", last, number)
        starts = starts_at(number, len(row), place)
        value = make.dynamic_slice(number, values, starts, row)
        total = make.binary(number, root.opcode, total, value)
        return [total, values, make.dynamic_update_slice(number, found_rows, total, starts)]

    rows = counted_loop(x, [start, given, whole], body, n)[-1]
    return replace(x, moved(x, rows, 0, d))


def _has_low_first(x: Instruction) -> bool | None:
    """False for a sort that has the greatest of its first operand first; None for other orders."""
    first, second = x.to_apply.parameters[:2]
    least, greatest = bounds(first.element_type)
    if least is None:
        return None
    values = np.asarray([v for v in range(-2, 3) if least <= v <= greatest])
    own = rounded(first.element_type, values)
    test = None if own is None else formula_values(x.to_apply.root, {first: own[:, None], second: own})
    orders = {True: values[:, None] < values, False: values[:, None] > values}
    return next((k for k, order in orders.items() if test is not None and np.array_equal(test, order)), None)


def _extreme(x: Instruction) -> bool:
    """One end of a sorted row, or its place, becomes that of the maximum or minimum."""
    low_first, data, (along,) = _has_low_first(x), _given(x)[0], x.dimensions
    parts, size, kind = _parts(x), data.sizes[along], data.element_type
    ends = [ranges_of(u)[along].start for _, u in parts if u.sizes[along] == 1]
    if low_first is None or len(ends) < len(parts) or set(ends) - {0, size - 1} or not ends:
        return False
    for (element, user), start in zip(parts, ends, strict=True):
        is_largest, is_last = (start > 0) == low_first, (start > 0) == (data is x.operand)
        bound = bounds(kind)[not is_largest]
        if bound is None:
            return False
        own = [(r.start, r.limit, r.stride) for r in ranges_of(user)]
        own[along] = 0, size, 1
        rows = make.slice_of(x, data, *zip(*own, strict=True))
        found = _reduced(x, rows, bound, is_largest)
        if element is not x and element.tuple_index:
            whole = make.broadcast(x, rows.shape, found, others(rows.rank, [along]))
            test = make.compare(x, "EQ", rows, whole)
            numbers = make.iota(x, rows.shape.with_element_type(element.element_type), along)
            nowhere = 0 if is_last else size - 1
            chosen = make.select(x, test, numbers, make.scalar_like(numbers, nowhere))
            found = _reduced(x, chosen, nowhere, is_last)
        replace(user, found)
    return True


_NUMBERS = values("s32 s64 u32 u64")  # as high as an array is long


def _argmax_below(x: Instruction) -> bool:
    """The largest element is searched before growing functions, and without what is added to all."""
    values, *others = x.operands
    if len(others) != 3 or not _takes_largest(x.to_apply) or {e.raw("index") for e in x.users} != {"1"}:
        return False
    below = values
    while _grows(below) and all(spread(o)[1][d] is None for o in below.operands[1:] for d in x.dimensions):
        below = below.operand
    is_same = below is values or below.element_type != values.element_type
    if is_same or scalar_of(others[1]) != -inf:
        return False
    x.replace_operand(0, below)
    return True


def _grows(x: Instruction) -> bool:
    """True if a larger first operand has a larger result, which does not overflow."""
    if x.opcode == "exponential":
        shifted = x.operand
        return shifted.opcode == "subtract" and any(
            combines_by(i, "maximum") and shifted.operand in i.operands for i in origins(shifted.second)
        )
    if x.opcode == "divide":
        total = source(x.second)
        return is_total(total) and total.operand.opcode == "exponential" and _grows(total.operand)
    return x.opcode in ("add", "subtract")


def _reduced(
    x: Instruction,
    rows: Instruction,
    bound: Value,
    is_largest: bool,
) -> Instruction:
    kind = rows.element_type
    function = make.reducer(x, "extreme", "maximum" if is_largest else "minimum", kind)
    return make.reduce(
        x,
        rows,
        make.scalar(x, kind, bound),
        x.dimensions,
        function,
    )


def _takes_largest(function: Computation) -> bool | None:
    """True if of two numbers with places the place of the larger one is taken, False if that of the smaller
    one, in both the first of equal ones; None for other functions."""
    cases = np.asarray([(a, i, b, 1 - i) for a, b, i in product((0, 1), repeat=3)])
    given = zip(function.parameters, cases.T, strict=True)
    own = {p: value for p, v in given if (value := rounded(p.element_type, v)) is not None}
    found = [formula_values(o, own) for o in function.root.operands]
    a, i, b, j = cases.T
    for is_largest, better in ((True, a > b), (False, a < b)):
        taken = np.where(better | ((a == b) & (i < j)), [a, i], [b, j])
        if all(f is not None and np.array_equal(f, t) for f, t in zip(found, taken, strict=True)):
            return is_largest
    return None


def _first_equal(x: Instruction) -> bool:
    """The place of an extreme is the first of what equals it, by two reductions that YNNPACK computes."""
    if x.operand_count != 4 or counted_along(x.second) not in x.dimensions or len(x.dimensions) > 1:
        return False
    data, numbers = x.operand, make.convert(x, x.second, "f32")
    is_largest = _takes_largest(x.to_apply)
    if is_largest is None or data.element_type != "f32" or counted_along(numbers) is None:
        return False
    bound = -inf if is_largest else inf
    if [scalar_of(o) for o in x.operands[2:]] != [bound, 0]:
        return False
    extreme = _reduced(x, data, bound, is_largest)
    whole = make.broadcast(x, data.shape, extreme, others(data.rank, x.dimensions))
    is_nan = make.compare(x, "NE", data, data)
    found = make.binary(x, "or", make.compare(x, "EQ", data, whole), is_nan)
    first = _reduced(x, make.select(x, found, numbers, make.scalar_like(numbers, inf)), inf, is_largest=False)
    return replace(x, make.result_of(x, [extreme, make.convert(x, first, x.second.element_type)]))


def _parts(x: Instruction) -> list[tuple[Instruction, Instruction]]:
    """The slices of sorted values and of their places, each with what it reads; none where others read it."""
    parts = [(x, u) for u in x.users]
    if x.is_tuple:
        parts = [(e, u) for e in x.users for u in e.users] if _has_places(x) else []
    return parts if all(u.is_slice for _, u in parts) else []


def _has_numbers(x: Instruction) -> bool:
    return x.operand_count == 2 and x.second.element_type in _NUMBERS


def _has_places(x: Instruction) -> bool:
    return _has_numbers(x) and counted_along(_given(x)[-1]) == x.dimension


def _given(x: Instruction) -> Instructions:
    """The operands of a sort, before all are reversed, as those of a descending argsort are."""
    is_reversed = all(o.opcode == "reverse" and o.dimensions == x.dimensions for o in x.operands)
    return [o.operand for o in x.operands] if is_reversed else list(x.operands)


def _write_ranks(x: Instruction) -> bool:
    """The ranks, by an argsort of an argsort, are numbers written at the places that the first one found."""
    order = x.operand
    first = order.operand if order.is_get_tuple_element and order.tuple_index else order
    is_order = first.opcode == "sort" and first.dimensions == x.dimensions and _has_places(first)
    is_same = order.element_type == x.operands[-1].element_type
    if not is_order or not is_same or not _has_places(x) or not _has_low_first(x):
        return False
    ranks = _written_at(x, order, x.second)
    for element in list(x.users):
        element.replace_all_uses_with(ranks if element.tuple_index else x.second)
    return True


def _written_at(x: Instruction, places: Instruction, values: Instruction) -> Instruction:
    """Values at places that number each row of a sort in another order."""
    (along,) = x.dimensions
    sizes, batch = values.sizes, others(places.rank, x.dimensions)
    return sums_at(x, places, values, sizes, along, batch, unique_indices="true")


def _values_by(x: Instruction, test: Instruction) -> list[float]:
    """The one value of an array where a test is false, and where true; fewer if it depends on more."""
    above = reach([x], lambda i: () if i is test else i.operands)
    others = (i for i in above if i is not test and i.opcode not in ELEMENTWISE_OPCODES)
    if any(formula_values(i) is None for i in others):
        return []
    ends = [formula_values(x, {test: np.full(x.sizes, value)}) for value in (False, True)]
    return [end.flat[0].item() for end in ends if end is not None and (end == end.flat[:1]).all()]


def _count_places(x: Instruction) -> bool:
    """A sort by True and False, or two numbers chosen so, becomes a count of those before, and a scatter."""
    key, (along,), low_first = x.operand, x.dimensions, _has_low_first(x)
    if low_first is None or not _has_numbers(x):
        return False
    tests = (o for o in origins(key) if o.element_type == "pred" and o.sizes == key.sizes)
    found = ((t, values) for t in tests if len(values := _values_by(key, t)) == 2)
    test, values = next(found, (key, [0.0, 0.0]))
    if not (values[0] < values[1] or values[1] < values[0]):
        return False
    is_true = (values[1] < values[0]) == low_first
    is_first = test if is_true else make.unary(x, "not", test)
    ones = make.convert(x, is_first, "s32")
    before = cumulated(x, ones, along)
    count = make.broadcast(x, ones.shape, total_of(x, ones, [along]), others(ones.rank, [along]))
    number = make.iota(x, ones.shape, along)
    later = make.binary(x, "subtract", make.binary(x, "add", count, number), before)
    places = make.select(x, is_first, make.binary(x, "subtract", before, make.scalar_like(before, 1)), later)
    order = _written_at(x, places, x.second)
    first, second = (make.scalar_like(key, v) for v in (values[::-1] if is_true else values))
    keys = make.select(x, make.compare(x, "LT", number, count), first, second)
    for element in list(x.users):
        element.replace_all_uses_with(order if element.tuple_index else keys)
    return True


def _of_pairs(
    value: Instruction,
    own: list[int],
    along: int,
    place: int,
    most: int,
    slices: Instructions,
) -> Labelled | None:
    """The array of whose pairs a slice has one element, moved to this place in each; other values, twice."""
    d = own.index(along)
    *rest, size = sizes = list(value.sizes)
    sizes[d] *= 2
    is_half = value.is_slice and value.operand.sizes == (*rest, 2 * size)
    if is_half and prod(sizes[d + 1 :]) == 1 and 2 in (ranges_of(value)[-1].stride, 2 * size):
        slices.append(value)
        whole = make.resized(value, value.operand, sizes)
        shift = place - ranges_of(value)[-1].start
        return make.padded(value, whole, shift, -shift, d), own
    pairs = inserted(value.shape, d + 1, [2])
    repeated = make.broadcast(value, pairs, value, sorted({*range(pairs.rank)} - {d + 1}))
    return (make.resized(value, repeated, sizes), own) if prod(sizes) < most else None


def _shift_pairs(x: Instruction) -> bool:
    """The halves of pairs are computed for all elements, from these and their neighbours, and chosen."""
    along, parts = x.rank - 1, list(x.operands)
    padding = ["0_0_0x" * along + own for own in ("0_1_1", "1_0_1")]
    if x.raw("padding") in padding:
        parts[1] = make.broadcast(x, parts[0].shape, parts[1])
        parts = parts[:: 1 if x.raw("padding") == padding[0] else -1]
    elif x.dimensions == (along,) and x.sizes[along] == len(parts) == 2:
        along -= 1
    else:
        return False
    most = x.element_count
    slices, found = Instructions(), Instructions()
    for place, part in enumerate(parts):
        last = partial(
            _of_pairs,
            along=along,
            place=place,
            most=most,
            slices=slices,
        )
        view = View({along: 2 * part.sizes[along]}, last)
        new = view.whole(part, dims_of(x))
        found += new[:1] if new is not None else []
    if not slices or len(found) < len(parts) or most < MIN_ELEMENTS:
        return False
    numbers = make.iota(x, found[0].shape.with_element_type("s32"), along)
    odd = make.binary(x, "and", numbers, make.scalar_like(numbers, 1))
    return replace(x, make.select(x, make.convert(x, odd, "pred"), found[1], found[0]))


_SORTED = 8  # rows of which more than one in so many is read are sorted as fast


def _few_sorted(x: Instruction) -> bool:
    """Both ends of sorted rows, or one of them, and their places, become those of `jax.lax.top_k`."""
    low_first, data, (along,), parts = _has_low_first(x), _given(x)[0], x.dimensions, _parts(x)
    size, last = data.sizes[along], data.rank - 1
    ranges = [(e, u, ranges_of(u)[along]) for e, u in parts]
    ends = grouped((size - r.start < r.limit, (e, u, r)) for e, u, r in ranges)
    counts = {k: max(size - r.start if k else r.limit for *_, r in own) for k, own in ends.items()}
    count, most = sum(counts.values()), max(counts.values(), default=0)
    if low_first is None or count * _SORTED > size or most < 2 or data.element_type not in FLOATING_TYPES:
        return False
    for is_last, own in ends.items():
        count = counts[is_last]
        sign = "copy" if is_last == low_first else "negate"
        given = make.unary(x, sign, moved(x, data, along, last))
        shape = with_dimensions(given.shape, [*given.sizes[:-1], count])
        both = Shape.tuple_of([shape, shape.with_element_type("s32")])
        top = make.add(x, "topk", both, [given], k=count, largest="true")
        values, places = make.elements(make.add(x, "opt-barrier", both, [top]), (0, 1))
        shift = size - count if is_last else 0
        for element, user, r in own:
            is_value = element is x or element.tuple_index == 0
            new = moved(x, make.unary(x, sign, values) if is_value else places, last, along)
            if is_last:
                new = make.add(x, "reverse", new.shape, [new], dimensions=[along])
            whole = list(ranges_of(user))
            whole[along] = SliceRange(r.start - shift, r.limit - shift, r.stride)
            replace(user, make.add(x, "slice", user.shape, [new], slice=SliceRanges(whole)))
    return True


def _keep_top_k(x: Instruction) -> bool:
    """A `top_k` stays one where parts of unequal ends are read (`xla/service/topk_rewriter.cc`)."""
    read = [(e, u) for e in x.users if e.is_get_tuple_element for u in e.users]
    limits = {ranges_of(u)[-1].limit if u.is_slice else e.sizes[-1] for e, u in read}
    if len(limits) > 1:
        x.replace_all_uses_with(make.add(x, "opt-barrier", x.shape, [x]))
    return len(limits) > 1


def _flipped(x: Instruction) -> Instruction:
    """Integers in the order of the floats with these bits, and back: negative ones flip all but the sign."""
    sign = make.binary(x, "shift-right-arithmetic", x, make.scalar_like(x, x.shape.bit_width - 1))
    rest = make.scalar_like(x, 2 ** (x.shape.bit_width - 1) - 1)
    return make.binary(x, "xor", x, make.binary(x, "and", sign, rest))


def _sort_bits(x: Instruction) -> bool:
    """Floats are sorted as integers, which XLA:CPU compares without a call: NaN last, as for JAX, no -0."""
    keys, *others = x.operands
    is_float = keys.element_type in ("bf16", "f16", "f32", "f64")
    if not is_float or keys.element_count < 1024 or not _has_low_first(x):  # few take as long as a kernel
        return False
    number = make.select(x, make.compare(x, "NE", keys, keys), make.scalar_like(keys, nan), keys)
    zero = make.zeros(x, keys.shape)
    number = make.select(x, make.compare(x, "EQ", number, zero), zero, number)
    bits = _flipped(make.convert(x, number, f"s{keys.shape.bit_width}", "bitcast-convert"))
    given = [bits, *others]
    new = make.add(
        x,
        "sort",
        Shape.tuple_of([o.shape for o in given]) if others else bits.shape,
        given,
        called=comparator(x.parent, [o.element_type for o in given], "LT"),
        dimensions=x.dimensions,
        is_stable=x.raw("is_stable", "false"),
    )
    first, *rest = make.elements(new, range(len(given))) if others else [new]
    back = make.convert(x, _flipped(first), keys.element_type, "bitcast-convert")
    return replace(x, make.result_of(x, [back, *rest]))


_COMPARED = 9  # elements of rows that are sorted by comparing neighbours


def _compare_neighbours(x: Instruction) -> bool:
    """Short rows are sorted as whole columns: neighbours are exchanged in as many rounds as there are."""
    (along,) = x.dimensions
    size = x.operand.sizes[along]
    function = x.to_apply.post_order()
    is_plain = all(not i.operands or i.opcode in ELEMENTWISE_OPCODES for i in function)
    if not (is_plain and 1 < size <= _COMPARED) or _has_low_first(x) is None:
        return False
    columns = [[make.part(x, o, k, k + 1, along) for o in x.operands] for k in range(size)]
    rounds = [range(first % 2, size - 1, 2) for first in range(size)]
    for place in chain(*rounds):
        low, high = columns[place : place + 2]
        values = dict(zip(x.to_apply.parameters, chain(*zip(high, low, strict=True)), strict=True))
        for i in function:
            if i not in values:
                own = low[0].shape.with_element_type(i.element_type)
                operands = [values[o] for o in i.operands]
                new = i.clone(operands, shape=own if operands else i.shape)
                new = x.parent.add_instruction(new)
                values[i] = new if operands else make.broadcast(x, own, new)
        swaps = values[x.to_apply.root]
        pairs = list(zip(low, high, strict=True))
        columns[place] = [make.select(x, swaps, b, a) for a, b in pairs]
        columns[place + 1] = [make.select(x, swaps, a, b) for a, b in pairs]
    whole = [make.concatenate(x, list(column), along) for column in zip(*columns, strict=True)]
    x.replace_all_uses_with(make.result_of(x, whole))
    return True


WINDOWS = {
    "window-by-dimension": Rewriting("reduce-window", _by_dimension),
    "compare-not-sort": Rewriting("sort", _compare_neighbours),
    "add-the-shifts": Rewriting("convolution", _add_shifts),
    "convolve-by-fft": Rewriting("convolution", _transform_filter, "cpu"),
    "real-fft": Rewriting("slice real", _real_transform),
    "transform-once": Rewriting("add subtract", _transform_once),
    "shift-the-pairs": Rewriting("concatenate pad", _shift_pairs, "tpu"),
    "triangular-cumsum": Rewriting("reduce-window", _cumulate_by_product),
    "scan-not-cumsum": Rewriting("reduce-window", _cumulate_by_rows, "cpu"),
    "max-not-sort": Rewriting("sort", _extreme),
    "argmax-by-max": Rewriting("reduce", _first_equal, "cpu"),
    "argmax-of-logits": Rewriting("reduce", _argmax_below),
    "write-the-ranks": Rewriting("sort", _write_ranks, "cpu"),
    "count-not-sort": Rewriting("sort", _count_places),
    "top-k-not-sort": Rewriting("sort", _few_sorted),
    "sort-as-integers": Rewriting("sort", _sort_bits, "cpu"),
    "keep-top-k": Rewriting("topk", _keep_top_k, "cpu"),
}
