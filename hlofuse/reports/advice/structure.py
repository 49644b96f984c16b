"""Products with matrices that a formula writes: their elements, and the same products in slices and sums."""

from collections.abc import Iterator
from contextlib import suppress
from math import prod

import numpy as np

from hlofuse.ir import Instruction
from hlofuse.ir import replace as replaced
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.elementwise import CannotEvaluate
from hlofuse.passes.common.evaluation import elements
from hlofuse.passes.common.literals import Elements
from hlofuse.passes.common.shapes import array, labels_of, with_dimensions
from .contracting import PRODUCTS, View, labelled, on_both, over, reorder, sizes_of, summed
from .matching import is_constant
from .written import MOST_EVALUATED, equal_places, fold, gather_rows, replace, spread, written_before

_FEW = 8
"""Parts that are added, sums in sums that are looked into, and the side of a matrix that stays as it is."""

Term = tuple[Elements, Instruction | None, int | None]
"""Weights of a part of a matrix, and what scales it: a scalar, or a value for each row (0) or column (1)."""


def _terms(x: Instruction, cache: dict[Instruction, Elements], depth: int = 0) -> Iterator[Term]:
    """The parts whose sum a matrix is; else CannotEvaluate."""
    with suppress(CannotEvaluate):
        yield elements(x, cache, MOST_EVALUATED), None, None
        return
    first, *rest = x.operands or (x,)
    if x.opcode == "broadcast" and first.shape.rank < 2:
        yield np.broadcast_to(True, x.shape.dimensions), first, x.dimensions[0] if x.dimensions else None
    elif depth == _FEW or x.opcode not in ("add", "subtract", "select", "multiply"):
        raise CannotEvaluate
    elif x.opcode == "select":
        chosen = elements(first, cache, MOST_EVALUATED)
        for part, value in zip((chosen, ~chosen), rest, strict=True):
            for weights, data, place in _terms(value, cache, depth + 1):
                if weights.any():
                    yield weights * part, data, place
    elif x.opcode == "multiply":
        try:
            scale = elements(first, cache, MOST_EVALUATED)
            first = rest[0]
        except CannotEvaluate:
            scale = elements(rest[0], cache, MOST_EVALUATED)
        for weights, data, place in _terms(first, cache, depth + 1):
            yield weights * scale, data, place
    else:
        yield from _terms(first, cache, depth + 1)
        for weights, data, place in _terms(rest[0], cache, depth + 1):
            yield 0 - weights if x.opcode == "subtract" else weights, data, place


def _scaled(x: Instruction, value: Instruction, weights: Elements) -> Instruction:
    """Rows times weights."""
    if (weights == weights[0]).all():
        factor = make.scalar_like(value, float(weights[0]))
        return value if weights[0] == 1 else make.binary(x, "multiply", value, factor)
    column = make.constant(x, array(value.element_type, weights.shape), weights.tolist())
    return _by(x, value, column, [0])


def _by(
    x: Instruction,
    value: Instruction,
    factor: Instruction | None,
    along: list[int],
) -> Instruction:
    if factor is None:
        return value
    scale = make.broadcast(x, value.shape, make.convert(x, factor, value.element_type), along)
    return make.binary(x, "multiply", value, scale)


def _banded(x: Instruction, y: Instruction, weights: Elements) -> list[Instruction]:
    """A matrix of few diagonals times `y`: for each a slice, with weights; else CannotEvaluate."""
    rows, columns = weights.shape
    if np.count_nonzero(weights) > _FEW * max(rows, columns):
        raise CannotEvaluate
    at, places = np.nonzero(weights)
    diagonals = np.unique(places - at)
    if 4 * len(diagonals) - 4 > min(rows, columns, 4 * _FEW):
        raise CannotEvaluate
    found = list[Instruction]()
    for d in map(int, diagonals):
        own = at[places - at == d]
        start = int(own[0])
        end = int(own[-1]) + 1
        part = make.part(
            x,
            y,
            start + d,
            end + d,
        )
        line = weights[np.arange(start, end), np.arange(start, end) + d]
        found.append(
            make.padded(
                x,
                _scaled(x, part, line),
                start,
                rows - end,
            )
        )
    return found


def _picked(x: Instruction, y: Instruction, weights: Elements) -> Instruction:
    """A matrix of one number in each row, or of equal runs, times `y`; else CannotEvaluate."""
    (rows, columns), (_, *sizes) = weights.shape, y.shape.dimensions
    at, places = np.nonzero(weights)
    values = weights[at, places]
    run = columns // rows
    if np.array_equal(at, np.arange(rows)):
        indices = make.constant(x, array("s32", places.shape), places.tolist())
        return _scaled(x, gather_rows(x, y, indices, 0), values)
    order = np.argsort(places)
    if not np.array_equal(at[order], np.arange(rows * run) // max(run, 1)) or columns != rows * run:
        raise CannotEvaluate
    runs = make.reshape(x, with_dimensions(y.shape, [rows, run, *sizes]), _scaled(x, y, values[order]))
    return summed(x, (runs, [*range(runs.shape.rank)]), [1])[0]


def _times(x: Instruction, y: Instruction, weights: Elements) -> list[Instruction]:
    """Parts whose sum is a matrix of these weights times `y`; CannotEvaluate where no structure is found."""
    (rows, columns), kind = weights.shape, y.element_type
    if not np.isfinite(weights).all():
        raise CannotEvaluate
    with suppress(CannotEvaluate):
        return _banded(x, y, weights)
    if min(rows, columns) < _FEW:
        raise CannotEvaluate
    if np.count_nonzero(weights) <= max(rows, columns):
        return [_picked(x, y, weights)]
    above = float(weights[0, -1])
    below = float(weights[-1, 0])
    if rows != columns and above != below:
        raise CannotEvaluate
    near = _banded(x, y, weights - np.where(np.tri(rows, columns, dtype=bool), below, above))
    labels = [*range(y.shape.rank)]
    sizes = dict(enumerate([rows, *y.shape.dimensions[1:]]))
    if above:
        total = summed(x, (_scaled(x, y, np.full(columns, above)), labels), [0])
        near.append(over(x, total, labels, sizes))
    if above != below:
        ones = y.shape.rank - 1
        window = f"{{size={rows}{'x1' * ones} pad={rows - 1}_0{'x0_0' * ones}}}"
        add = [("to_apply", make.reducer(x, "sum", "add", kind))]
        cumulated = make.add(x, "reduce-window", y.shape, [y, make.zero(x, kind)], called=add, window=window)
        near.append(_scaled(x, cumulated, np.full(rows, below - above)))
    return near


def as_slices(x: Instruction) -> bool:
    """A product with a band, a triangle, runs or one number in each row becomes slices and sums."""
    factors = labelled(x)
    kind = x.element_type
    for (matrix, labels), (other, own) in (factors, factors[::-1]):
        row = max(labels, default=-1)
        is_row = min(labels, default=0) < 0 <= row and row not in own
        if matrix.shape.rank != 2 or not is_row or kind not in FLOATING_TYPES:
            continue
        along = own.index(min(labels))
        order = [along, *(d for d in range(len(own)) if d != along)]
        y = make.transpose(x, make.convert(x, other, kind), order)
        parts = list[Instruction]()
        with suppress(CannotEvaluate):
            for weights, data, place in _terms(matrix, written_before(x)):
                is_column = place is not None and labels[place] < 0
                scaled = y
                if is_column:
                    scaled = _by(x, y, data, [0])
                found = _times(x, scaled, weights if labels[1] < 0 else weights.T)
                scale = None if is_column else data
                own_dims = [] if place is None else [0]
                parts += [_by(x, value, scale, own_dims) for value in found]
            if 0 < len(parts) <= _FEW:
                whole = fold(x, "add", parts), [row, *(own[d] for d in order[1:])]
                return replace(
                    x,
                    over(
                        x,
                        whole,
                        [*range(x.shape.rank)],
                        sizes_of(*factors),
                    ),
                )
    return False


def scale_each(x: Instruction) -> bool:
    """A product with a matrix, or with one for each place of a batch, of which a test selects the diagonal
    becomes a product with the vector on it."""
    factors = labelled(x)
    result = [*range(x.shape.rank)]
    for (matrix, labels), (other, own) in (factors, factors[::-1]):
        masked, dims = spread(matrix)
        is_masked = masked.opcode == "multiply" or (
            masked.opcode == "select" and is_constant(masked.operands[2], 0)
        )
        if not is_masked:
            continue
        test, values = sorted(masked.operands[:2], key=lambda o: not equal_places(o))
        if masked.opcode == "select" and test is not masked.operands[0]:
            continue
        names = [labels[dims.index(d)] for d in range(masked.shape.rank)]
        pair = sorted(names[d] for d in equal_places(test))
        if not pair or not pair[0] < 0 <= pair[1] or pair[1] in own:
            continue
        one = dict.fromkeys(pair, pair[1])
        found = View({}, lambda *_: None).of(values, [one.get(d, d) for d in names])
        if found is None or not {*found[1], *own} - {pair[0]} <= {*result}:
            continue
        new = on_both(x, "multiply", (other, [one.get(d, d) for d in own]), found)
        return replace(x, over(x, new, result, sizes_of(*factors)))
    return False


def small_first(x: Instruction) -> bool:
    """A product of three in the better order; one with a sum of such products or diagonals term by term."""
    if reorder(x) or _solve_later(x) or _multiply_filters(x):
        return True
    sums = [o.opcode in ("add", "subtract") and len(o.users) == 1 for o in x.operands]
    for side, value in enumerate(x.operands):
        is_own = [o.opcode in PRODUCTS for o in value.operands] if sums[side] else []
        if not any(is_own):
            continue
        terms = []
        for term, own in zip(value.operands, is_own, strict=True):
            operands = list(x.operands)
            operands[side] = make.copy_of(term, term.operands) if own else term  # of one reader
            terms.append(make.copy_of(x, operands))
        total = make.binary(x, value.opcode, terms[0], terms[1])
        if all(reorder(t) or as_slices(t) or scale_each(t) for t in terms):
            return replace(x, total)
    return False


def _solve_later(x: Instruction) -> bool:
    """(A⁻¹·B)·C becomes A⁻¹·(B·C), which solves for fewer columns; A is triangular."""
    solved, c = x.operands
    order = solved.shape.rank - 2
    dims = DotDimensions.of(x)
    is_first = dims.lhs_contracting == (order + 1,) and dims.lhs_batch == tuple(range(order))
    is_call = "trsm" in (solved.raw("custom_call_target") or "")
    side, left = ("backend_config", "side = 76") if is_call else ("left_side", "true")  # LAPACK's L
    if not is_first or left not in (solved.raw(side) or "") or len(solved.users) > 1:
        return False
    sizes = solved.shape.dimensions
    columns = x.shape.element_count // prod(sizes[:-1])
    if 2 * columns > sizes[-1]:
        return False
    product = make.copy_of(x, [solved.operands[1], c])
    given = make.reshape(x, with_dimensions(solved.shape, [*sizes[:-1], columns]), product)
    new = make.copy_of(solved, [solved.operands[0], given], given.shape)
    if is_call:
        first, second = solved.attributes["operand_layout_constraints"]
        layouts = f"{{{first}, {replaced(second, dimensions=given.shape.dimensions)}}}"
        new.attributes = new.attributes.updated(operand_layout_constraints=layouts)
    _solve_later(product)
    return replace(x, make.reshape(x, x.shape, new))


def _multiply_filters(x: Instruction) -> bool:
    """A product of a convolution's features, as of patches, becomes a convolution with multiplied filters."""
    dims = DotDimensions.of(x)
    for side, value in enumerate(x.operands):
        weights = x.operands[1 - side]
        if value.opcode != "convolution" or value.raw("batch_group_count", "1") != "1":
            continue
        labels = labels_of(value)
        if dims.contracting(side) != (labels.output.index("f"),) or weights.shape.rank != 2 or dims.lhs_batch:
            continue
        filters = value.operands[1]
        groups = int(value.raw("feature_group_count") or 1)
        along = dims.contracting(1 - side)[0]
        features, count = (weights.shape.dimensions[d] for d in (along, 1 - along))
        rest = labels.kernel_spatial_dimensions
        inputs = filters.shape.dimensions[labels.rhs.index("i")]
        taps = [filters.shape.dimensions[d] for d in rest]
        if groups * inputs * prod(taps) * count >= features * (inputs * prod(taps) + count):
            continue
        order = [labels.rhs.index("o"), labels.rhs.index("i"), *rest]
        kind = x.element_type
        own = make.transpose(x, filters, order)
        own = make.reshape(x, array(kind, [groups, features // groups, inputs * prod(taps)]), own)
        factor = make.transpose(x, weights, [along, 1 - along])
        factor = make.reshape(x, array(kind, [groups, features // groups, count]), factor)
        joined = new_dot(x, [own, factor], [[0], [0]], [[1], [1]])
        joined = make.reshape(x, array(kind, [groups * inputs, *taps, count]), joined)
        back = [-1 if label == "o" else 0 if label == "i" else 1 + int(label) for label in labels.rhs]
        joined = make.transpose(x, joined, [d % (len(taps) + 2) for d in back])
        sizes = [
            count if label == "f" else n
            for label, n in zip(labels.output, value.shape.dimensions, strict=True)
        ]
        new = make.copy_of(value, [value.operands[0], joined], with_dimensions(value.shape, sizes))
        new.attributes = new.attributes.without("feature_group_count")
        place = labelled(x)[1 - side][1][1 - along]
        names = [place if d < 0 else d for d in labelled(x)[side][1]]
        found = new, names
        order = [*range(x.shape.rank)]
        return replace(x, over(x, found, order, sizes_of(found)))
    return False
