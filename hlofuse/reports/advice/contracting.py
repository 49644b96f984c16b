"""Sums of products before optimizations: their factors, and the order in which they are multiplied."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain, count, islice, pairwise
from math import prod

from msgspec import Struct

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import (
    Dims,
    Instruction,
    Instructions,
    Predicate,
    SliceRange,
    SliceRanges,
    Window,
    WindowDimension,
    reach,
)
from hlofuse.ir.opcodes import values as opcodes
from hlofuse.ir.shape import FLOATING_TYPES, Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.shapes import array, common_factors, ranges_of, with_dimensions, without_ones
from .matching import both_orders, is_constant, is_masked, is_total, source
from .written import counted, dims_of, equal_places, fold, replace, spread

Labelled = tuple[Instruction, list[int]]  # A factor in a sum of products, with a label for each dimension


def labelled(x: Instruction) -> list[Labelled]:
    """The operands of a product. The result's dimensions are their own labels; what is summed is below 0."""
    dims = DotDimensions.of(x)
    place = len(dims.lhs_batch)
    found = []
    for side, value in enumerate(x.operands):
        free = dims.free(side, value.rank)
        labels = {d: k for k, d in enumerate(dims.batch(side))} | {d: place + k for k, d in enumerate(free)}
        labels |= {d: -1 - k for k, d in enumerate(dims.contracting(side))}
        place += len(free)
        found.append((value, [labels[d] for d in range(value.rank)]))
    return found


def sizes_of(*factors: Labelled) -> dict[int, int]:
    return {d: n for value, labels in factors for d, n in zip(labels, value.sizes, strict=True)}


def over(
    x: Instruction,
    one: Labelled,
    order: list[int] | None = None,
    sizes: dict[int, int] | None = None,
) -> Instruction:
    """A factor over the dimensions of all these labels, by default those of `x`, with the type of `x`."""
    (value, labels), sizes = one, sizes or sizes_of((x, dims_of(x)))
    order = dims_of(x) if order is None else order
    own = [d for d in order if d in labels]
    value = make.transpose(x, make.convert(x, value, x.element_type), list(map(labels.index, own)))
    shape = array(x.element_type, [sizes[d] for d in order])
    return make.broadcast(x, shape, value, list(map(order.index, own)))


def on_both(
    x: Instruction,
    opcode: str,
    a: Labelled,
    b: Labelled,
) -> Labelled:
    """An operation on each pair of elements."""
    order = sorted({*a[1], *b[1]})
    sizes = sizes_of(a, b)
    left, right = (over(x, one, order, sizes) for one in (a, b))
    new = make.binary(x, opcode, left, right)
    return new, order


def with_factors(x: Instruction, one: Labelled, factors: Iterable[Labelled]) -> Labelled:
    return reduce(partial(on_both, x, "multiply"), factors, one)


def total_of(at: Instruction, x: Instruction, along: Sequence[int]) -> Instruction:
    """The sum over some dimensions."""
    kind = x.element_type
    return make.reduce(at, x, make.zero(at, kind), along, make.reducer(at, "sum", "add", kind))


def cumulated(at: Instruction, x: Instruction, along: int) -> Instruction:
    """The sums from the first place on along a dimension."""
    sizes = [n if d == along else 1 for d, n in enumerate(x.sizes)]
    add = make.reducer(at, "sum", "add", x.element_type)
    window = Window(WindowDimension(n, padding_low=n - 1) for n in sizes)
    return make.reduce_window(at, x.shape, [x, make.zero(at, x.element_type)], add, window)


def summed(x: Instruction, one: Labelled, remaining: Container[int]) -> Labelled:
    """The value summed over the labels that do not remain, in a type that is wide enough."""
    value, labels = one
    rest = [d for d in labels if d in remaining]
    if rest == labels:
        return one
    along = [k for k, d in enumerate(labels) if d not in rest]
    total = total_of(x, make.convert(x, value, x.element_type), along)
    is_floating = value.element_type in FLOATING_TYPES  # others may be too narrow
    return make.convert(x, total, value.element_type) if is_floating else total, rest


def contracted(
    x: Instruction,
    a: Labelled,
    b: Labelled,
    remaining: Collection[int],
) -> Labelled:
    """Σ a·b over all labels that do not remain, as a matrix product where it is one."""
    both = [d for d in a[1] if d in b[1]]
    sums = [d for d in both if d not in remaining]
    a, b = (summed(x, one, {*remaining, *both}) for one in (a, b))
    free = [d for d in (*a[1], *b[1]) if d not in both]
    if not sums or not free:
        return summed(x, on_both(x, "multiply", a, b), remaining)
    sides = (a, b) if free == sorted(free) else (b, a)
    types = {value.element_type for value, _ in sides}
    kind = types.pop() if len(types) == 1 and types <= FLOATING_TYPES else x.element_type
    batch = [d for d in both if d in remaining]
    batches, along = ([[labels.index(d) for d in ds] for _, labels in sides] for ds in (batch, sums))
    operands = [make.convert(x, value, kind) for value, _ in sides]
    found = new_dot(x, operands, batches, along, x.element_type, x)
    return found, batch + [d for _, labels in sides for d in labels if d in free]


def as_sum(x: Instruction) -> tuple[Instruction, Instruction] | None:
    """The sum of an elementwise product that a product without rows of its own is, and `x` by that sum."""
    (a, order), (b, own) = labelled(x)
    if {*order} != {*own}:
        return None
    sizes = sizes_of((a, order))
    second = b if own == order else over(x, (b, own), order, sizes)
    value = make.binary(x, "multiply", a, second)
    total = total_of(x, value, [k for k, d in enumerate(order) if d < 0])
    rest = [d for d in order if d >= 0]
    return total, over(x, (total, rest), sorted(rest), sizes)


def is_covered(total: Instruction, factors: Iterable[Labelled]) -> bool:
    """True if some factor has each dimension that is summed, so that equal summands are not lost."""
    found = {d for _, labels in factors for d in labels}
    return all(d in found or total.operand.sizes[d] == 1 for d in total.dimensions)


def spread_factor(x: Instruction) -> Labelled:
    """The value that is broadcast, labelled by the dimensions of `x`."""
    value, dims = spread(x)
    return value, [dims.index(d) for d in range(value.rank)]


_MOST_TERMS = 1000  # a square of a square has twice the factors


def terms_of(x: Instruction, opcode: str = "add") -> Instructions:
    """The values that a sum, or another operation on two, combines."""
    terms, waiting = Instructions(), [x]
    while waiting:
        term = waiting.pop()
        if term.opcode == opcode and (term is x or term.user_count == 1) and len(terms) < _MOST_TERMS:
            waiting += reversed(term.operands)
        else:
            terms.append(term)
    return terms


_DEEPEST = 32  # levels of products below which a factor stays whole
_MOST_FACTORS = 64


def multiplied(x: Instruction) -> list[Labelled]:
    """The factors of an elementwise product, also of an outer one that a matrix product without a sum forms.
    A quotient by what is spread is a product with its inverse. Empty for a product of too many."""
    found = list(islice(_multiplied(x, _DEEPEST), _MOST_FACTORS + 1))
    return found if len(found) <= _MOST_FACTORS else []


def _multiplied(x: Instruction, levels: int) -> Iterator[Labelled]:
    if not levels:
        yield x, dims_of(x)
        return
    if x.opcode == "divide":
        below, own = spread_factor(x.second)
        if len(own) < x.rank and below.element_type == x.element_type and x.element_type in FLOATING_TYPES:
            inverse = make.binary(x, "divide", make.scalar_like(below, 1), below)
            yield from _multiplied(x.operand, levels - 1)
            yield inverse, own
            return
    if x.opcode == "multiply":
        for o in x.operands:
            yield from _multiplied(o, levels - 1)
        return
    value, own = spread_factor(x)
    if value.element_type not in (x.element_type, *FLOATING_TYPES):
        yield value, own  # integers may wrap
        return
    factors: Iterable[Labelled] = _multiplied(value, levels - 1) if value is not x else [(value, own)]
    if value.is_dot and not DotDimensions.of(value).lhs_contracting:
        factors = labelled(value)
    for v, labels in factors:
        yield v, [own[d] for d in labels]


_FRESH = count(1000)  # labels of dimensions that no result has


def factors_of(
    x: Instruction,
    value: Instruction,
    labels: list[int],
) -> list[Labelled]:
    """The factors of a matrix product, or of an elementwise one if neither has all dimensions; else none."""
    if value.element_type not in (x.element_type, *FLOATING_TYPES):
        return []  # integers may wrap
    if value.is_dot:
        fresh = [next(_FRESH) for _ in DotDimensions.of(value).lhs_contracting][::-1] + labels
        shift = len(fresh) - len(labels)
        return [(v, [fresh[d + shift] for d in own]) for v, own in labelled(value)]
    found = [(v, [labels[d] for d in own]) for v, own in multiplied(value)]
    if not found:
        return []
    found.sort(key=lambda f: -len(f[1]))
    while len(found) > 2 and len(found[0][1]) < len(labels):
        small = found.pop()
        if not _absorb(x, found, small):
            nearest = min(found, key=lambda f: prod(sizes_of(f, small).values()))
            found.remove(nearest)
            found.append(on_both(x, "multiply", nearest, small))
            found.sort(key=lambda f: -len(f[1]))
    return found if len(found) == 2 and len(found[0][1]) < len(labels) else []


def _absorb(x: Instruction, factors: list[Labelled], one: Labelled) -> bool:
    """Have a factor that has all dimensions of `one` be multiplied by it; False where none has them."""
    for place, factor in enumerate(factors):
        if {*one[1]} <= {*factor[1]}:
            factors[place] = on_both(x, "multiply", factor, one)
            return True
    return False


PRODUCTS = ("multiply", "divide", "dot")
_SUMS = ("add", "subtract")


def _distributed(x: Instruction) -> Instruction:
    """Weights or a mask that leaves 0 with each term; a slice of a product as one of slices; others as is."""
    is_mask = is_masked(x)
    if x.is_slice and x.operand.is_dot:
        return _cut(x, x.operand)
    if x.opcode != "multiply" and not is_mask:
        return x
    place = int(is_mask or x.second.opcode in _SUMS)
    total = x.operands[place]
    if is_mask and total.is_dot:
        return _masked(x, total)
    if total.opcode not in _SUMS or total.user_count > 1:
        return x
    terms = [make.copy_of(x, x.operands) for _ in total.operands]
    for new, term in zip(terms, total.operands, strict=True):
        new.replace_operand(place, term)
    return fold(x, total.opcode, terms)


def _cut(x: Instruction, product: Instruction) -> Instruction:
    """The part of a product that a slice reads, as the product of parts."""
    new = make.copy_of(product, product.operands, x.shape)
    for side, (value, labels) in enumerate(labelled(product)):
        for along, d in enumerate(labels):
            if d >= 0:
                own = ranges_of(x)[d]
                value = make.part(x, value, own.start, own.limit, along, own.stride)
        new.replace_operand(side, value)
    return new


def _masked(x: Instruction, product: Instruction) -> Instruction:
    """The product with operands that the mask of `x` has masked: a NaN that it hides stays hidden."""
    mask = spread_factor(x.operand)
    new = make.copy_of(product, product.operands)
    for side, factor in enumerate(labelled(product)):
        if {*mask[1]} <= {*factor[1]}:
            value = factor[0]
            test = over(mask[0], mask, factor[1], sizes_of(factor))
            new.replace_operand(side, make.select(x, test, value, make.zeros(x, value.shape)))
    return new if new.operands != product.operands else x


def product_of_sums(x: Instruction, opcode: str) -> bool:
    """A sum of products that `opcode` forms becomes a product of what is summed first."""
    value = x.operand
    if not is_total(x) or x.element_type not in FLOATING_TYPES or value.user_count > 1:
        return False
    below = value.operand if value.is_reshape else value
    if below is not value and below.sizes == without_ones(value.shape).dimensions:
        places = [k for k, n in enumerate(value.sizes) if n > 1]
        along = [places.index(d) for d in x.dimensions if d in places]
        new = make.reduce(x, below, x.second, along, x.to_apply)
        replace(x, new)
        x, value = new, below
    labels = dims_of(value)
    if opcode == "dot" and (value := _distributed(value)).opcode in _SUMS:  # as of a bias
        terms = [make.copy_of(o, o.operands) if o.operands else o for o in value.operands]
        sums = [make.copy_of(x, [t, x.second]) for t in terms]
        total = fold(x, value.opcode, sums)
        found = [product_of_sums(s, opcode) for s in sums]
        for s, is_summed in zip(sums, found, strict=True):
            if any(found) and not is_summed:
                product_of_sums(s, "")
        return any(found) and replace(x, total)
    terms = terms_of(value, "multiply")
    inner = [t for t in terms if not {*x.dimensions}.isdisjoint(spread_factor(t)[1])]
    outer = [spread_factor(t) for t in terms if t not in inner]  # the same in all summands
    weighted = _weighted(value, inner, labels) if opcode == "dot" else []
    factors = weighted
    if not weighted and (value.opcode == "multiply" or not opcode):
        factors = factors_of(value, fold(value, "multiply", inner or [value]), labels)
    if not factors:
        return opcode == value.opcode == "multiply" and _sum_one_first(x)
    if not is_covered(x, factors):
        return False
    remaining = [d for d in labels if d not in x.dimensions]
    summed_up = contracted(value, factors[0], factors[1], remaining)
    if opcode and not weighted and (opcode == "multiply") != (summed_up[0].is_dot):
        return False
    return replace(x, over(value, with_factors(value, summed_up, outer), remaining))


def _sum_one_first(x: Instruction) -> bool:
    """A sum of products over several dimensions is taken over one of them first, as a product."""
    for d in x.dimensions if len(x.dimensions) > 1 else ():
        value = make.copy_of(x.operand, x.operand.operands)
        inner = make.reduce(x, value, x.second, [d], x.to_apply)
        rest = [k - (k > d) for k in x.dimensions if k != d]
        total = make.reduce(x, inner, x.second, rest, x.to_apply)
        if product_of_sums(inner, "multiply"):
            return replace(x, total)
    return False


def _weighted(value: Instruction, terms: Instructions, labels: list[int]) -> list[Labelled]:
    """The factors of the one matrix product among the terms, each by the others that have its dimensions."""
    dots = [t for t in terms if t.is_dot]
    if len(dots) != 1:
        return []
    factors = factors_of(value, dots[0], labels)
    for term in terms:
        if term is not dots[0] and not _absorb(value, factors, spread_factor(term)):
            return []
    return factors


def _unfolded(
    x: Instruction, labels: list[int], free: Container[int]
) -> tuple[Labelled, dict[int, list[int]]] | None:
    """The value below a reshape, and for each label of `x` those in its place; only `free` ones join."""
    value = x.operand
    sizes = value.sizes
    found = []
    joined = dict[int, list[int]]()
    seen = dict[int, list[int]]()
    for (start, place), (end, after) in pairwise(common_factors(sizes, x.sizes)):
        own = [labels[d] for d in range(place, after) if x.sizes[d] > 1]
        own = own or [-1 - len(labels) - start]
        part = list(sizes[start:end])
        if len(own) > 1 and not all(d in free for d in own):
            return None
        if seen.setdefault(own[0], part) != part:
            return None
        if len(own) == len(part) == 1:
            found += joined.setdefault(own[0], own)
        else:
            fresh = [next(_FRESH) for _ in part]
            found += joined.setdefault(own[0], fresh)
        for d in own[1:]:
            joined[d] = []
    return (value, found), joined


def _below_reshape(
    x: Instruction, one: Labelled, other: Labelled
) -> tuple[Labelled, Labelled, list[int]] | None:
    """Two factors in the dimensions below the reshape that is the first, and those of the result, or None."""
    if (unfolded := _unfolded(*one, ())) is None:
        return None
    below, joined = unfolded
    result = [p for d in range(x.rank) for p in joined.get(d, [d])]
    own = [p for d in other[1] for p in joined.get(d, [d])]
    sizes = sizes_of(other, below)
    c = make.resized(x, other[0], [sizes[d] for d in own])
    return below, (c, own), result


def multiply_unrepeated(x: Instruction, of_rows: bool = False) -> bool:
    """A product with values that are repeated along its batch has these places as rows of the other one.
    `of_rows`: equal rows, also joined to others, are multiplied once; along a sum the other one is summed."""
    if of_rows and (terms := multiply_apart(x, lambda o: len(spread_factor(o)[1]) < o.rank, of_rows)):
        return sum(multiply_unrepeated(term, of_rows) for term in terms) > 0
    for (value, labels), other in both_orders(labelled(x)):
        repeated, dims = spread_factor(value)
        forms = [((value, labels), other, dims_of(x))]
        if repeated.is_reshape:
            opened = _below_reshape(x, (repeated, [labels[d] for d in dims]), other)
            forms += [opened] if opened is not None else []
        for (whole, order), c, result in forms:
            small, dims = spread_factor(whole)
            part = small, [order[d] for d in dims]
            sizes = sizes_of((whole, order), c)
            dropped = {d for d in order if d not in part[1] and sizes[d] > 1}
            is_product = not of_rows or any(d in c[1] and d not in result for d in part[1])
            if dropped and is_product and of_rows != (dropped <= {*c[1]} & {*result}):
                return replace(x, over(x, contracted(x, part, c, result), result, sizes))
    return False


def reorder(x: Instruction) -> bool:
    """(A·B)·C, also of an outer product, becomes A·(B·C) where that takes at most half of the operations, or
    fewer and B·C has at most a quarter of the elements of A·B."""
    for (value, labels), (c, own) in both_orders(labelled(x)):
        result = dims_of(x)
        totals = [u for u in value.users if is_total(u)]
        count = value.user_count - len(totals)
        if any(not u.is_dot and u not in totals for u in value.users):
            continue
        if value.is_transpose and value.operand.is_reshape:
            value, labels = value.operand, [labels[value.dimensions.index(d)] for d in range(len(labels))]
        if value.is_reshape and value.operand.opcode == "multiply":
            opened = _below_reshape(x, (value, labels), (c, own))
            if opened is not None:
                (value, labels), (c, own), result = opened
        parts = factors_of(x, value, labels)
        if not parts:
            parts, totals = _scaled_factors(x, value, labels)
        sizes = dict.fromkeys(result, 1) | sizes_of((value, labels), *parts, (c, own))

        def work(*groups: Iterable[int], sizes: dict[int, int] = sizes) -> int:
            return prod(sizes[d] for d in set().union(*groups))

        for a, b in both_orders(parts) if parts else ():
            remaining = [d for d in {*b[1], *own} if d in a[1] or d in result]
            before = work(a[1], b[1]) / count + work(labels, own)
            after = work(b[1], own) + work(a[1], remaining)
            if 2 * after <= before or (after < before and 4 * work(remaining) <= work(labels)):
                if not all(_sum_apart(total) for total in totals):
                    break
                inner = contracted(x, b, (c, own), remaining)
                outer = contracted(x, a, inner, result)
                replace(x, over(x, outer, result, sizes))
                for product, _ in (inner, outer):
                    if product.is_dot:
                        reorder(product)
                return True
    return False


def _scaled_factors(
    x: Instruction, value: Instruction, labels: list[int]
) -> tuple[list[Labelled], Instructions]:
    """The factors of the product that `value` scales, scaled, and its sums; none where others read it."""
    scales = [(v, [labels[d] for d in own]) for v, own in multiplied(value)]
    products = [s for s in scales if s[0].is_dot]
    if len(products) != 1 or products[0][0] is value:
        return [], []
    product, own = products[0]
    totals = [u for u in product.users if is_total(u)]
    parts = factors_of(x, product, own) if product.user_count == len(totals) + 1 else []
    is_scaled = all(_absorb(x, parts, s) for s in scales if s[0] is not product)
    return (parts, totals) if is_scaled else ([], [])


def _sum_apart(total: Instruction) -> bool:
    """Sum the factors of the product that `total` reads; False where the product is needed."""
    total.replace_operand(0, make.copy_of(total.operand, total.operand.operands))
    return product_of_sums(total, "dot")


def multiply_apart(x: Instruction, chosen: Predicate, of_rows: bool = False) -> Instructions:
    """A product with joined values, some of them `chosen`, or joined rows, becomes products with each."""
    factors = labelled(x)
    for side, (joined, labels) in enumerate(factors):
        if not joined.is_concatenate or not any(map(chosen, joined.operands)):
            continue
        other, own = factors[1 - side]
        number = labels[joined.dimension]
        if number >= 0 and (number in own or not of_rows):
            continue
        terms = Instructions()
        start = 0
        for o in joined.operands:
            end = start + o.sizes[joined.dimension]
            c = other if number >= 0 else make.part(x, other, start, end, own.index(number))
            sizes = [end - start if d == number else n for d, n in enumerate(x.sizes)]
            shape = with_dimensions(x.shape, sizes)
            terms.append(make.copy_of(x, [o, c] if side == 0 else [c, o], shape))
            start = end
        replace(x, fold(x, "add", terms) if number < 0 else make.concatenate(x, terms, number))
        return terms
    return []


Last = Callable[[Instruction, list[int]], Labelled | None]
_EACH = ELEMENTWISE_OPCODES - {"bitcast-convert"} | {"all-gather", "all-reduce"}


class View(Struct):
    """Some elements of an array, computed without the others: those at equal places of all dimensions with
    the same label, and fewer along the labels in `sizes`. `last` takes them where they are not computed."""

    sizes: dict[int, int]
    last: Last
    brought: Collection[int] = ()  # Labels that `last` may add, as those of a batch
    rows: dict[Shape, Instruction] = {}
    done: dict[tuple[Instruction, Dims], Labelled | None] = {}

    def of(self, x: Instruction, labels: list[int]) -> Labelled | None:
        if len({*labels}) == len(labels) and self.sizes.keys().isdisjoint(labels):
            return x, labels
        key = x, tuple(labels)
        if key not in self.done:
            self.done[key] = self._computed(x, labels) or self.last(x, labels)
        return self.done[key]

    def whole(self, x: Instruction, labels: list[int]) -> Labelled | None:
        """The elements of `x`, with a dimension for each label, and for those that `last` brought."""
        found = self.of(x, labels)
        if found is None:
            return None
        order = [*dict.fromkeys([*labels, *found[1]])]
        return over(x, found, order, sizes_of((x, labels), found) | self.sizes), order

    def _computed(self, x: Instruction, labels: list[int]) -> Labelled | None:
        own = sizes_of((x, labels)) | self.sizes
        below = x.operands[:1]
        rest = [*dict.fromkeys(labels)]
        shape = with_dimensions(x.shape, [own[d] for d in rest])
        if x.opcode == "iota" and (along := labels[counted(x) or 0]) not in self.sizes:
            row = array(x.element_type, [own[along]])
            return self.rows.setdefault(row, make.iota(x, row, 0)), [along]
        if x.is_broadcast:
            return self.of(below[0], [labels[d] for d in x.dimensions])
        if x.is_transpose:
            return self.of(below[0], [labels[x.dimensions.index(d)] for d in range(len(labels))])
        if x.is_dot:
            first, second = (self.of(*side) for side in factors_of(x, x, labels))
            return contracted(x, first, second, {*rest, *self.brought}) if first and second else None
        if x.is_reduce and x.operand_count == 2:
            return self._reduced(x, labels)
        if x.is_reshape:
            return self._reshaped(x, labels, shape)
        gathered = [labels[d] for d in x.dimensions if x.opcode == "all-gather"]
        if x.opcode not in _EACH or any(d in self.sizes or labels.count(d) > 1 for d in gathered):
            return None
        found = [self.whole(o, labels if o.rank else []) for o in x.operands]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found):
            return None
        rest = [*dict.fromkeys([*rest, *chain.from_iterable(order for _, order in parts)])]
        own |= sizes_of(*parts)
        operands = [p[0] if p[1] in (rest, []) else over(p[0], p, rest, own) for p in parts]
        shape = with_dimensions(x.shape, [own[d] for d in rest])
        dims = {"dimensions": [rest.index(d) for d in gathered]} if gathered else {}
        return make.copy_of(x, operands, shape, **dims), rest

    def _reduced(self, x: Instruction, labels: list[int]) -> Labelled | None:
        given = iter(labels)
        full = [next(_FRESH if d in x.dimensions else given) for d in range(x.operand.rank)]
        found = self.whole(x.operand, full)
        if found is None:
            return None
        value, order = found
        along = [k for k, d in enumerate(order) if d in full and d not in labels]
        new = make.reduce(x, value, x.second, along, x.to_apply)
        return new, [d for d in order if d in labels or d not in full]

    def _reshaped(
        self,
        x: Instruction,
        labels: list[int],
        shape: Shape,
    ) -> Labelled | None:
        once = [d for d in labels if labels.count(d) == 1 and d not in self.sizes]
        unfolded = _unfolded(x, labels, once)
        if unfolded is None:
            return None
        below, joined = unfolded
        if any(joined.get(d, [d]) != [d] for d in self.sizes):
            return None
        found = self.of(*below)
        if found is None or not {*found[1]} <= {*below[1]}:
            return None
        rest = [*dict.fromkeys(labels)]
        order = [p for d in {**dict.fromkeys(rest), **joined} for p in joined.get(d, ())]
        value = over(below[0], found, order, sizes_of(below) | self.sizes)
        return make.reshape(x, shape, value), rest


_FLOATS = opcodes("f16 bf16 f32 f64")  # of more digits than a vector loses
_MOVING = opcodes("slice pad concatenate")
_LINEAR = _MOVING | opcodes("add subtract negate select broadcast transpose reshape copy convert")


def _is_zero(x: Instruction) -> bool:
    return is_constant(x, 0) or (source(x).opcode == "multiply" and any(map(_is_zero, source(x).operands)))


def _is_linear(x: Instruction, reading: Container[Instruction]) -> bool:
    """True if a multiple of the operands in `reading` has that multiple as its result."""
    inside = [o in reading for o in x.operands]
    if x.opcode in PRODUCTS:
        return sum(inside) == 1 and (x.opcode != "divide" or inside[0])
    values = x.operands[1:] if x.opcode == "select" and not inside[0] else x.operands
    is_sum = x.element_type in _FLOATS and (x.opcode in _LINEAR or is_total(x))
    return is_sum and all((o.rank and o in reading) or _is_zero(o) for o in values)


def _one_row(x: Instruction, names: list[int], view: View) -> Labelled | None:
    """A slice, padding or join of the one row along the label -1; None where it moves the rows."""
    row = names.index(-1)
    own = [-1 if d == row else next(_FRESH) for d in dims_of(x)]
    sizes = list(x.sizes)
    moves = x.opcode == "pad" and x.attributes["padding"][row].low
    stays = not moves and x.operand.sizes[row] == sizes[row]
    parts = [view.whole(o, own if o.rank else []) for o in x.operands if stays]
    if not parts or any(part is None or not {*part[1]} <= {*own} for part in parts):
        return None
    sizes[row] = 1
    new = make.copy_of(x, [part[0] for part in parts if part], with_dimensions(x.shape, sizes))
    if x.is_slice:
        ranges = list(ranges_of(x))
        ranges[row] = SliceRange(0, 1)
        new.attributes = new.attributes.updated(slice=SliceRanges(ranges))
    return new, names


def multiply_basis(x: Instruction) -> bool:
    """A vector, or a batch of them, times a matrix computed from the identity is computed from the vector."""
    return any(_multiply_basis(x, *pair) for pair in both_orders(labelled(x)))


def _multiply_basis(x: Instruction, matrix: Labelled, one: Labelled) -> bool:
    vector, labels = one
    batch = [d for d in labels if d >= 0]
    if labels.count(-1) != 1 or len(batch) + 1 < len(labels) or not {*batch} <= {*matrix[1]}:
        return False
    given = Instructions()

    def last(value: Instruction, names: list[int]) -> Labelled | None:
        if value.opcode in _MOVING:
            return _one_row(value, names, view)
        if value.element_type not in _FLOATS:
            return None
        test, scale = value.operands[:2] if is_masked(value) else (value, make.scalar_like(value, 1))
        pair = sorted(names[d] for d in equal_places(test))
        factor, dims = spread_factor(scale)
        if -1 not in pair or pair[1] in batch or len(dims) > 1:
            return None
        given.append(value)
        row = make.resized(x, vector, [1, *vector.sizes])
        own = [pair[1] if names[d] in pair else names[d] for d in dims]
        return on_both(
            value, "multiply", (row, [-1, *(d if d in batch else pair[1] for d in labels)]), (factor, own)
        )

    view = View({-1: 1}, last, batch)
    found = view.of(*matrix)
    reading = {*reach(given, lambda i: i.users)}
    done = [(i, -1 in new[1]) for (i, _), new in view.done.items() if new and i not in given]
    is_linear = all(is_row == (i in reading) and (_is_linear(i, reading) or not is_row) for i, is_row in done)
    is_linear = is_linear and bool(given)
    return found is not None and is_linear and replace(x, over(x, summed(x, found, dims_of(x))))


def on_diagonal(x: Instruction) -> tuple[list[int], Instruction]:
    """The two dimensions at equal places of which alone `x` is not 0, and values with its elements there."""
    if x.opcode == "multiply":
        test, values = sorted(x.operands, key=lambda o: not equal_places(o))
        return equal_places(test), values
    if is_masked(x):
        return equal_places(x.operand), x.second
    return [], x
