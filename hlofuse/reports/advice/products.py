"""Products, and sums of them, before optimizations: written in another way with the same values."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from math import prod
from typing import NamedTuple, Self

import numpy as np

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import FLOATING_TYPES, Instruction, Instructions, Shape, grouped, reach, values
from hlofuse.ir import replace as replaced
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, dot_like, new_dot
from hlofuse.passes.common.evaluation import MOVES, CannotEvaluate, elements
from hlofuse.passes.common.literals import Elements, scalar_of
from hlofuse.passes.common.shapes import (
    array,
    labels_of,
    numbers_of,
    others,
    ranges_of,
    with_dimensions,
    with_layout,
    without_ones,
)
from hlofuse.passes.loop.parts import body_of, carried_unchanged
from .contracting import (
    PRODUCTS,
    Labelled,
    View,
    as_sum,
    contracted,
    cumulated,
    factors_of,
    labelled,
    multiply_basis,
    multiply_unrepeated,
    on_both,
    on_diagonal,
    over,
    product_of_sums,
    reorder,
    sizes_of,
    spread_factor,
    terms_of,
    total_of,
    with_factors,
)
from .matching import MIN_BYTES, both_orders, has, is_total, only_reader, origins, source
from .reductions import sum_squares
from .written import (
    MOST_EVALUATED,
    Rewriting,
    dims_of,
    fold,
    formula_values,
    gather_rows,
    moved,
    place_of,
    replace,
    spread,
    written_before,
)

_FEW = 8  # Parts that are added, sums in sums looked into, and the side of a matrix that stays as it is
Term = tuple[Elements, Instruction | None, int | None]
"""Weights of a part of a matrix, and what scales it: a scalar, or a value for each row (0) or column (1)."""


def _parts_of(
    x: Instruction,
    cache: dict[Instruction, Elements],
    depth: int = 0,
) -> Iterator[Term]:
    """The parts whose sum a matrix is; else CannotEvaluate."""
    with suppress(CannotEvaluate):
        yield elements(x, cache, MOST_EVALUATED), None, None
        return
    first, *rest = x.operands or (x,)
    parts: list[tuple[Elements | int, Instruction]]
    if x.is_broadcast and first.rank < 2:
        yield np.broadcast_to(True, x.sizes), first, x.dimension if x.dimensions else None
        return
    if depth == _FEW or x.opcode not in ("add", "subtract", "select", "multiply"):
        raise CannotEvaluate
    if x.opcode == "select":
        chosen = elements(first, cache, MOST_EVALUATED)
        parts = [(chosen, rest[0]), (~chosen, rest[1])]
    elif x.opcode == "multiply":
        try:
            parts = [(elements(first, cache, MOST_EVALUATED), rest[0])]
        except CannotEvaluate:
            parts = [(elements(rest[0], cache, MOST_EVALUATED), first)]
    else:
        parts = [(1, first), (-1 if x.opcode == "subtract" else 1, rest[0])]
    for factor, value in parts:
        for weights, data, place in _parts_of(value, cache, depth + 1):
            yield weights * factor, data, place


def _scaled(x: Instruction, value: Instruction, weights: Elements, along: int) -> Instruction:
    if (weights == weights[0]).all():
        factor = make.scalar_like(value, float(weights[0]))
        return value if weights[0] == 1 else make.binary(x, "multiply", value, factor)
    column = make.constant(x, array(value.element_type, weights.shape), weights.tolist())
    return _by(x, value, column, [along])


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


def _banded(x: Instruction, y: Instruction, weights: Elements, along: int) -> Instructions:
    """A matrix of few diagonals times `y`: for each a slice, with weights; else CannotEvaluate."""
    rows, columns = weights.shape
    if np.count_nonzero(weights) > _FEW * max(rows, columns):
        raise CannotEvaluate
    at, places = np.nonzero(weights)
    diagonals = np.unique(places - at)
    if 4 * len(diagonals) - 4 > min(rows, columns, 4 * _FEW):
        raise CannotEvaluate
    found = Instructions()
    for d in map(int, diagonals):
        own = at[places - at == d]
        start = int(own[0])
        end = int(own[-1]) + 1
        part = make.part(x, y, start + d, end + d, along)
        line = weights[np.arange(start, end), np.arange(start, end) + d]
        found.append(make.padded(x, _scaled(x, part, line, along), start, rows - end, along))
    return found


def _picked(x: Instruction, y: Instruction, weights: Elements, along: int) -> Instruction:
    """A matrix of one number in each row, or of equal runs, times `y`; else CannotEvaluate."""
    rows, columns = weights.shape
    at, places = np.nonzero(weights)
    values = weights[at, places]
    run = columns // rows
    if np.array_equal(at, np.arange(rows)):
        indices = make.constant(x, array("s32", places.shape), places.tolist())
        return _scaled(x, moved(x, gather_rows(x, y, indices, along), 0, along), values, along)
    order = np.argsort(places)
    if not np.array_equal(at[order], np.arange(rows * run) // max(run, 1)) or columns != rows * run:
        raise CannotEvaluate
    sizes = [*y.sizes[:along], rows, run, *y.sizes[along + 1 :]]
    runs = make.resized(x, _scaled(x, y, values[order], along), sizes)
    return total_of(x, runs, [along + 1])


def _times(x: Instruction, y: Instruction, weights: Elements, along: int) -> Instructions:
    """Parts whose sum is a matrix of these weights times `y`; CannotEvaluate where no structure is found."""
    rows, columns = weights.shape
    if not np.isfinite(weights).all():
        raise CannotEvaluate
    with suppress(CannotEvaluate):
        return _banded(x, y, weights, along)
    if min(rows, columns) < _FEW:
        raise CannotEvaluate
    if np.count_nonzero(weights) <= max(rows, columns):
        return [_picked(x, y, weights, along)]
    above = float(weights[0, -1])
    below = float(weights[-1, 0])
    if rows != columns and above != below:
        raise CannotEvaluate
    near = _banded(x, y, weights - np.where(np.tri(rows, columns, dtype=bool), below, above), along)
    if above:
        total = total_of(x, _scaled(x, y, np.full(columns, above), along), [along])
        shape = with_dimensions(y.shape, [*y.sizes[:along], rows, *y.sizes[along + 1 :]])
        near.append(make.broadcast(x, shape, total, others(y.rank, [along])))
    if above != below:
        near.append(_scaled(x, cumulated(x, y, along), np.full(rows, below - above), along))
    return near


def _as_slices(x: Instruction) -> bool:
    """A product with a band, a triangle, runs or one number in each row becomes slices and sums."""
    kind = x.element_type
    for (matrix, labels), (other, own) in both_orders(labelled(x)):
        row = max(labels, default=-1)
        is_row = min(labels, default=0) < 0 <= row and row not in own
        if matrix.rank != 2 or not is_row or kind not in FLOATING_TYPES:
            continue
        along = own.index(min(labels))
        y = make.convert(x, other, kind)
        parts = Instructions()
        with suppress(CannotEvaluate):
            for weights, data, place in _parts_of(matrix, written_before(x)):
                is_column = place is not None and labels[place] < 0
                scaled = y
                if is_column:
                    scaled = _by(x, y, data, [along])
                found = _times(x, scaled, weights if labels[1] < 0 else weights.T, along)
                scale = None if is_column else data
                own_dims = [] if place is None else [along]
                parts += [_by(x, value, scale, own_dims) for value in found]
            if 0 < len(parts) <= _FEW:
                own[along] = row
                return replace(x, over(x, (fold(x, "add", parts), own)))
    return False


def _scale_each(x: Instruction) -> bool:
    """A product with a diagonal matrix, or one for each place of a batch, becomes one with a vector."""
    for (matrix, labels), (other, own) in both_orders(labelled(x)):
        masked, dims = spread(matrix)
        places, values = on_diagonal(masked)
        names = [labels[dims.index(d)] for d in range(masked.rank)]
        pair = sorted(names[d] for d in places)
        if not pair or not pair[0] < 0 <= pair[1] or pair[1] in own:
            continue
        one = dict.fromkeys(pair, pair[1])
        found = View({}, lambda *_: None).of(values, [one.get(d, d) for d in names])
        if found is None or not {*found[1], *own} - {pair[0]} <= {*dims_of(x)}:
            continue
        new = on_both(x, "multiply", (other, [one.get(d, d) for d in own]), found)
        return replace(x, over(x, new))
    return False


def _small_first(x: Instruction) -> bool:
    """A product of three in the better order; one with a sum of such products or diagonals term by term."""
    if reorder(x) or _multiply_filters(x):
        return True
    for side, whole in enumerate(x.operands):
        value = whole.operand if whole.is_transpose else whole
        is_sum = value.opcode in ("add", "subtract") and whole.user_count == value.user_count == 1
        is_wide = value.element_type in (x.element_type, *FLOATING_TYPES)  # other integers may wrap
        is_own = [o.opcode in PRODUCTS for o in value.operands] if is_sum and is_wide else []
        if not any(is_own):
            continue
        terms = []
        for term, own in zip(value.operands, is_own, strict=True):
            operands = list(x.operands)
            operands[side] = _alone(term) if own else term
            if value is not whole:
                operands[side] = make.copy_of(whole, [operands[side]])
            terms.append(make.copy_of(x, operands))
        total = fold(x, value.opcode, terms)
        smaller = [reorder(t) for t in terms]
        found = [done or _as_slices(t) or _scale_each(t) for t, done in zip(terms, smaller, strict=True)]
        if any(smaller) or (any(found) and all(map(max, found, (not own for own in is_own)))):
            return replace(x, total)
    return False


def _alone(x: Instruction) -> Instruction:
    """A copy of a product, with the products below that nothing else reads."""
    below = [_alone(o) if o.opcode in PRODUCTS and o.user_count == 1 else o for o in x.operands]
    return make.copy_of(x, below)


def _solve_later(x: Instruction, reader: Instruction | None = None) -> bool:
    """(A⁻¹·B)·C becomes A⁻¹·(B·C), and C·(A⁻¹·B) becomes (C·A⁻¹)·B, which solve for fewer columns. A is
    triangular. Nothing but the `reader` of the first may read what is solved."""
    factors = labelled(x)
    result = dims_of(x)
    sizes = sizes_of(*factors)
    for (solved, labels), (c, own) in both_orders(factors):
        if not _is_from_left(solved) or not {*solved.users} <= {x, reader}:
            continue
        *batch, row, column = labels
        free = [d for d in own if d not in labels]
        order = [*batch, row, *free]
        columns = prod(sizes[d] for d in free)
        joint, other = sorted((row, column))
        if joint >= 0 or other in own or min(batch, default=0) < 0 or 2 * columns > sizes[column]:
            continue
        if x.element_type != solved.element_type or (row < 0 and x.element_type not in FLOATING_TYPES):
            continue  # an adjoint has no flipped form
        inner = solved.second, labels
        given = (c, own) if row < 0 else contracted(x, inner, (c, own), result)
        shape = replaced(solved.shape, dimensions=(*solved.sizes[:-1], columns))
        right = over(x, given, order, sizes)
        texts = _flipped(solved) if row < 0 else {}
        if _lapack_solve(solved):
            first, _, *rest = solved.attributes["operand_layout_constraints"]
            texts["operand_layout_constraints"] = f"{{{', '.join(map(str, (first, shape, *rest)))}}}"
        new = make.copy_of(solved, solved.operands, shape, **texts)
        new.replace_operand(1, make.resized(x, right, shape.dimensions))
        found = make.resized(x, new, [sizes[d] for d in order]), order
        if row < 0:
            found = given = contracted(x, inner, found, result)
        replace(x, over(x, found))
        _solve_later(given[0], solved)
        return True
    return any(_solve_below(x, one, other) for one, other in both_orders(factors))


def _solve_below(x: Instruction, one: Labelled, c: Labelled) -> bool:
    """(B·A⁻¹)·C becomes B·(A⁻¹·C), where that solves for fewer columns."""
    value, labels = one
    parts = factors_of(x, value, labels) if value.is_dot and value.user_count == 1 else []
    for b, solved in both_orders(parts) if parts else ():
        inner = contracted(x, solved, c, {*b[1], *dims_of(x)})
        outer = contracted(x, b, inner, dims_of(x))
        if inner[0].is_dot and _solve_later(inner[0], value):
            return replace(x, over(x, outer))
    return False


def _lapack_solve(x: Instruction) -> str:
    """The configuration of a call of LAPACK that solves a triangular system; empty for other operations."""
    return str(x.raw("backend_config")) if "trsm" in str(x.raw("custom_call_target")) else ""


def _is_from_left(x: Instruction) -> bool:
    """True for a triangular system whose unknowns are columns."""
    return x.raw("left_side") == "true" or "side = 76" in _lapack_solve(x)  # LAPACK's L


def _flipped(x: Instruction) -> dict[str, str]:
    """The attribute that says which matrix a real triangular system has, for the transposed one."""
    if text := x.raw("transpose_a"):
        return {"transpose_a": "TRANSPOSE" if text.startswith("NO") else "NO_TRANSPOSE"}
    text = str(x.raw("backend_config"))
    return {"backend_config": re.sub(r"(?<=trans_x = )(78|84)", lambda m: str(162 - int(m[0])), text)}  # N, T


class _Triangle(NamedTuple):
    """A triangular system that is solved: with half of `factors`, for the columns of `given`."""

    factors: Instruction
    given: Instruction
    is_lower: bool
    is_transposed: bool

    @classmethod
    def of(cls, x: Instruction) -> Self | None:
        """None for another operation, and where the unknowns are rows."""
        call = _lapack_solve(x)
        side, lower = x.raw("transpose_a"), x.raw("lower") == "true" or "uplo = 76" in call  # LAPACK's L
        is_transposed = side == "TRANSPOSE" or "trans_x = 84" in call
        is_plain = side == "NO_TRANSPOSE" or "trans_x = 78" in call
        is_unit = x.raw("unit_diagonal") == "true" or "diag = 85" in call
        has_form = _is_from_left(x) and (is_plain or is_transposed) and is_unit == lower  # as LU has it
        return cls(x.operand, x.second, lower, is_transposed) if has_form else None


def _factorized(x: Instruction) -> tuple[Instruction, Instruction, Instruction, Instruction] | None:
    """The matrix and the right side of equations that a factorization with pivots solves, the last step at
    `x`; the solution, and the step with the upper factor, which is the first for a transposed matrix."""
    outer = _Triangle.of(x)
    inner = outer and _Triangle.of(source(outer.given))
    if outer is None or inner is None or outer.factors is not inner.factors:
        return None
    flipped = outer.is_transposed
    factors = outer.factors.second if outer.factors.opcode == "select" else outer.factors
    call = source(factors).operand if source(factors).is_get_tuple_element else x
    is_pair = (inner.is_lower, inner.is_transposed, outer.is_lower) == (not flipped, flipped, flipped)
    if not is_pair or "getrf" not in str(call.raw("custom_call_target")):
        return None
    below = x
    while flipped and below.user_count == 1 and below.user.is_reshape:
        below = below.user
    swapped = below.user if flipped and below.users else source(inner.given)
    sizes = {y.element_count for y in (x, outer.given, source(outer.given), inner.given, swapped)}
    if swapped.opcode != "gather" or swapped.sizes != swapped.operand.sizes:
        return None
    if len(sizes) > 1 or call not in reach([swapped.second], lambda y: y.operands):
        return None  # in the order of its pivots
    if flipped:
        return call.operand, inner.given, swapped, source(outer.given)
    return call.operand, _viewed(inner.given, swapped), x, x


def _viewed(x: Instruction, gathered: Instruction) -> Instruction:
    return gathered.operand if x is gathered else make.copy_of(x, [_viewed(x.operand, gathered)])


def _solve_small(x: Instruction) -> bool:
    """Two or three equations are solved by cofactors."""
    matrix, given, result, upper = _factorized(x) or (x, x, x, x)
    if matrix is x or matrix.sizes[-1] not in (2, 3):
        return False
    return replace(result, _solved(x, matrix, given, flipped=upper is not x))


def _solve_sparse(x: Instruction) -> bool:
    """Equations of which half, or all but three diagonals, is 0 are solved without a factorization."""
    matrix, given, result, upper = _factorized(x) or (x, x, x, x)
    n = 0 if matrix is x else matrix.sizes[-1]
    if n < 2 or matrix.element_count > MOST_EVALUATED:
        return False
    remaining = _nonzero(matrix, {}).reshape(-1, n, n).any(0)
    is_lower = not np.triu(remaining, 1).any()
    if is_lower or not np.tril(remaining, -1).any():
        name = "lower" if "lower" in upper.attributes else "backend_config"
        text = upper.raw(name) or ""
        text = text.replace("false", "true").replace("uplo = 85", "uplo = 76") if is_lower else text
        return replace(result, make.copy_of(upper, [matrix, given], upper.shape, **{name: text}))
    if n <= _FEW or np.triu(remaining, 2).any() or np.tril(remaining, -2).any():
        return False
    batch = matrix.sizes[:-2]
    along = len(batch)
    flat = make.resized(x, matrix, [*batch, n * n])
    middle, above, below = (make.part(x, flat, k, n * n, along, n + 1) for k in (0, 1, n))
    above, below = (below, above) if upper is not x else (above, below)
    lines = [make.padded(x, below, 1, 0, along), middle, make.padded(x, above, 0, 1, along)]
    columns = with_layout(given.element_type, given.sizes, (along, along + 1, *range(along)[::-1]))
    calls = (str(u.raw("custom_call_target")) for u in matrix.users)
    target = next(text for text in calls if "getrf" in text).replace("getrf", "gtsv")
    shapes = [*(o.shape for o in lines), columns]
    is_lapack = "lapack" in target
    attributes = {
        "custom_call_target": target if is_lapack else '"cusparse_gtsv2_ffi"',
        "operand_layout_constraints": f"{{{', '.join(map(str, shapes))}}}",
        "api_version": "API_VERSION_TYPED_FFI",
    }
    shape = Shape.tuple_of([*shapes, array("s32", batch)]) if is_lapack else columns
    new = make.add(x, "custom-call", shape, [*lines, given], copied_attributes=attributes)
    return replace(result, make.get_tuple_element(x, new, 3) if is_lapack else new)


_MOVES = {*MOVES} - {"bitcast-convert", "dynamic-slice", "dynamic-update-slice"}


def _nonzero(x: Instruction, cache: dict[Instruction, Elements], depth: int = 0) -> Elements:
    """False at each place where a formula, a mask, a scatter or a sum of such values writes 0."""
    if x not in cache and depth < 4 * _FEW and len(cache) * x.element_count < 4 * _FEW * MOST_EVALUATED:
        cache[x] = _where_written(x, cache, depth + 1)
    return cache[x] if x in cache else np.ones(x.sizes, bool)


def _where_written(x: Instruction, cache: dict[Instruction, Elements], depth: int) -> Elements:
    with suppress(CannotEvaluate):
        return np.asarray(elements(x, {}, MOST_EVALUATED) != 0)
    loop = x.called_by("while") if x.is_get_tuple_element else None
    if loop is not None and x in carried_unchanged(body_of(loop)) and loop.operand.opcode == "tuple":
        return _nonzero(loop.operand.operands[x.tuple_index], cache, depth)
    parts = [_nonzero(o, cache, depth) for o in x.operands]
    if parts and x.opcode in ("add", "subtract", "negate", "convert", "copy"):
        return parts[0] | parts[-1]
    if parts and x.opcode == "multiply":
        return parts[0] & parts[-1]
    if parts and x.opcode in _MOVES:
        return np.asarray(MOVES[x.opcode](x, *parts) != 0)
    if parts and x.opcode == "select":
        with suppress(CannotEvaluate):
            return np.where(elements(x.operand, {}, MOST_EVALUATED), *parts[1:])
        return parts[1] | parts[2]
    indices = formula_values(x.second) if parts and x.opcode == "scatter" else None
    is_each = indices is not None and numbers_of(x, "scatter_dims_to_operand_dims") == tuple(dims_of(x))
    if indices is None or not is_each or indices.shape != (*x.operands[2].sizes, x.rank):
        return np.ones(x.sizes, bool)
    places = indices.reshape(-1, x.rank)
    inside = ((places >= 0) & (places < x.sizes)).all(1)
    found = parts[0].copy()
    found[tuple(places[inside].T)] = True
    return found


def _vectors_read(x: Instruction) -> bool:
    """Singular vectors that nothing reads are not computed: all of them, or those beyond the shorter side."""
    config = str(x.raw("backend_config"))
    mode = re.search("mode = (65|83)", config)  # LAPACK's A, S
    if mode is None or "gesdd" not in str(x.raw("custom_call_target")):
        return False
    if x.is_root or not all(u.tuple_index for u in x.users):  # more than elements are read
        return False
    *batch, m, n = x.operand.sizes
    count, along = min(m, n), len(batch) + (m > n)
    shapes = list(x.shape.tuple_shapes)
    shapes[2] = replaced(shapes[2], dimensions=(*batch, m, count))
    shapes[3] = replaced(shapes[3], dimensions=(*batch, count, n))
    read = [e for e in x.users if e.tuple_index in (2, 3)]
    long = [e for e in read if e.sizes[along] > count]
    values = [*reach(long, lambda i: [u for u in i.users if not u.is_slice])]
    ends = [ranges_of(u)[along].limit for i in values for u in i.users if u.is_slice]
    is_part = all(i in long or (i.users and i.opcode in ELEMENTWISE_OPCODES) for i in values)
    if not is_part or max(ends, default=0) > count or (read and mode[1] == "83"):
        return False
    text = re.sub("mode = [0-9]+", "mode = 83" if read else "mode = 78", config)  # LAPACK's S, N
    new = make.copy_of(x, x.operands, Shape.tuple_of(shapes), frontend_attributes=None, backend_config=text)
    for e, part in [(e, make.get_tuple_element(x, new, e.tuple_index)) for e in x.users]:
        e.replace_all_uses_with(make.padded(x, part, 0, max(m, n) - count, along) if e in long else part)
    return True


def _solved(
    x: Instruction,
    matrix: Instruction,
    given: Instruction,
    flipped: bool,
) -> Instruction:
    """The solution of a matrix, or of its transpose, by cofactors; a singular one has no finite numbers."""
    n, rank = matrix.sizes[-1], matrix.rank
    kind, batch = matrix.element_type, matrix.sizes[:-2]
    multiply = partial(make.binary, x, "multiply")
    places = range(n)
    rows = [place_of(x, matrix, k, rank - 2) for k in places]
    a = [[place_of(x, row, k, rank - 2) for k in places] for row in rows]

    def cofactor(i: int, j: int) -> Instruction:
        if n == 2:
            return a[1 - i][1 - j] if i == j else make.unary(x, "negate", a[1 - i][1 - j])
        (i, k), (j, m) = (((p + 1) % n, (p + 2) % n) for p in (i, j))
        first, second = multiply(a[i][j], a[k][m]), multiply(a[i][m], a[k][j])
        return make.binary(x, "subtract", first, second)

    cofactors = [[cofactor(i, j) for j in places] for i in places]
    total = fold(x, "add", [multiply(a[0][j], cofactors[0][j]) for j in places])
    shape = array(kind, [*batch, 1, given.sizes[-1]])

    def whole(value: Instruction) -> Instruction:
        return make.broadcast(x, shape, value, range(len(batch)))

    right = [make.part(x, given, k, k + 1, rank - 2) for k in places]
    found = []
    for i in places:
        own = [cofactors[i][j] if flipped else cofactors[j][i] for j in places]
        terms = [multiply(whole(c), r) for c, r in zip(own, right, strict=True)]
        found.append(make.binary(x, "divide", fold(x, "add", terms), whole(total)))
    return make.concatenate(x, found, rank - 2)


def _multiply_filters(x: Instruction) -> bool:
    """A product of a convolution's features, as of patches, becomes a convolution with multiplied filters."""
    for (value, own), (weights, names) in both_orders(labelled(x)):
        if value.opcode != "convolution" or value.raw("batch_group_count", "1") != "1":
            continue
        labels, filters = labels_of(value), value.second
        feature = labels.output.index("f")
        is_matrix = [d for d in own if d in names] == [-1] and weights.rank == 2
        if not is_matrix or own[feature] >= 0 or filters.element_type != x.element_type:
            continue
        groups = int(value.raw("feature_group_count") or 1)
        along = names.index(-1)
        features, count = (weights.sizes[d] for d in (along, 1 - along))
        rest = labels.kernel_spatial_dimensions
        inputs = filters.sizes[labels.rhs.index("i")]
        taps = [filters.sizes[d] for d in rest]
        width = inputs * prod(taps)
        if groups * width * count >= features * (width + count):
            continue
        order = [labels.rhs.index("o"), labels.rhs.index("i"), *rest]
        given = make.resized(x, make.transpose(x, filters, order), [groups, features // groups, width])
        factor = make.transpose(x, weights, [along, 1 - along])
        factor = make.resized(x, factor, [groups, features // groups, count])
        joined = new_dot(x, [given, factor], [[0], [0]], [[1], [1]])
        joined = make.resized(x, joined, [groups * inputs, *taps, count])
        back = [-1 if label == "o" else 0 if label == "i" else 1 + int(label) for label in labels.rhs]
        joined = make.transpose(x, joined, [d % (len(taps) + 2) for d in back])
        sizes = list(value.sizes)
        sizes[feature] = count
        shape = with_dimensions(value.shape, sizes)
        new = make.copy_of(value, [value.operand, joined], shape, feature_group_count=None)
        return replace(x, over(x, (new, [names[1 - along] if d < 0 else d for d in own])))
    return False


_NARROW = {"f32": {"bf16", "f16"}, "s32": {"s8"}}
"""Types whose products of two numbers are exact in another, as matrix units compute them."""


def _narrow(x: Instruction) -> bool:
    """Operands that were widened are multiplied as they were; sums of int8 are those of int32, cut."""
    operands = [o.operand if o.opcode == "convert" else o for o in x.operands]
    types = {o.element_type for o in operands}
    wide = x.shape.with_element_type("s32") if x.element_type == "s8" else x.shape
    if len(types) > 1 or types - _NARROW.get(wide.element_type, set()):
        return False
    if operands == [*x.operands] and wide == x.shape:
        return False
    product = dot_like(x, wide, operands[0], operands[1], DotDimensions.of(x))
    return replace(x, make.convert(x, product, x.element_type))


_FEW_TERMS = 8
"""Each term is code of its own. On a CPU 4 × 4 matrices gain 88 times, 8 × 8 a quarter (jaxlib 0.11.1)."""


def _add_products(x: Instruction) -> bool:
    """A product that sums few terms becomes their sum, which fuses, in the dimensions of its reader."""
    sums = DotDimensions.of(x).lhs_contracting
    count = x.operand.sizes[sums[0]] if len(sums) == 1 else 0
    has_vector = any(o.rank == 1 for o in x.operands)
    if not 0 < count <= _FEW_TERMS * (4 if has_vector else 1):
        return False
    moved = only_reader(x)
    result = moved if moved is not None and moved.is_transpose else x
    order = list(result.dimensions) if result is not x else dims_of(x)
    factors = labelled(x)
    terms = []
    for k in range(count):
        parts = (_one_place(x, one, k) for one in factors)
        left, right = (over(x, part, order, sizes_of(*factors)) for part in parts)
        terms.append(make.binary(x, "multiply", left, right))
    return replace(result, fold(x, "add", terms))


def _one_place(x: Instruction, one: Labelled, number: int) -> Labelled:
    value, labels = one
    return place_of(x, value, number, labels.index(-1)), [d for d in labels if d != -1]


def _scaled_sum(x: Instruction) -> tuple[Instruction, Instruction | None] | None:
    """The sum that `x` is a multiple of, and the number by which it is multiplied."""
    factors = terms_of(x, "multiply")
    sums = [f for f in factors if is_total(f)]
    scales = [spread(f)[0] for f in factors if f not in sums[:1]]
    are_numbers = all(not s.sizes and s.element_type == x.element_type for s in scales)
    is_scaled = sums and are_numbers and x.user_count == 1
    return (sums[0], fold(x, "multiply", scales) if scales else None) if is_scaled else None


def _by_squares(x: Instruction) -> bool:
    """Powers with whole exponents that a formula writes become products of squares, one for each bit."""
    number, one = make.convert(x, x.second, "s32"), make.scalar_like(x.operand, 1)
    value = total = x.operand
    given = formula_values(spread(x.second)[0])
    is_wide = x.element_type in ("f32", "f64")  # others are rounded after each product
    if given is None or not is_wide or not np.isin(given, range(1 << _FEW)).all() or given.max(initial=0) < 2:
        return False
    for bit in range(int(given.max()).bit_length()):
        test = make.binary(x, "and", number, make.scalar_like(number, 1 << bit))
        test = make.compare(x, "NE", test, make.scalar_like(test, 0))
        factor = make.select(x, test, value, one)
        total = make.binary(x, "multiply", total, factor) if bit else factor
        value = make.binary(x, "multiply", value, value)
    return replace(x, total)


def _sum_once(x: Instruction) -> bool:
    """Sums of arrays of one shape, scaled and added, become one sum."""
    if any(u.opcode == "add" for u in x.users):
        return False
    terms = terms_of(x)
    sums = [(t, s) for t in terms if (s := _scaled_sum(t)) is not None]
    keys = ((s[0].operand.shape, s[0].dimensions) for _, s in sums)
    groups = grouped(zip(keys, sums, strict=True))
    found = max(groups.values(), key=len, default=[])
    if len(found) < 2:
        return False
    parts = []
    for _, (total, scale) in found:
        summand = total.operand
        if scale is not None:
            summand = make.binary(x, "multiply", summand, make.broadcast(x, summand.shape, scale))
        parts.append(summand)
    first = found[0][1][0]
    added = fold(x, "add", parts)
    new = make.reduce(x, added, first.second, first.dimensions, first.to_apply)
    taken = {t for t, _ in found}
    return replace(x, fold(x, "add", [new, *(t for t in terms if t not in taken)]))


def _terms(x: Instruction, f: Instruction) -> list[Labelled]:
    """The values whose difference is a factor of what `x` sums; other factors are one value."""
    whole, scaled = f, Instructions()
    while f.opcode == "multiply" or (f.opcode == "divide" and f.element_type in FLOATING_TYPES):
        scaled.append(f)
        f = f.operand
    if f.opcode != "subtract":
        return [spread_factor(whole)]
    found = [spread_factor(o) for o in f.operands]
    for g in reversed(scaled):
        scale = spread_factor(g.second)
        found = [on_both(x, g.opcode, t, scale) for t in found]
    return found


def _scaled_pair(
    x: Instruction,
    a: Labelled,
    b: Labelled,
    scale: Labelled | None,
) -> list[Labelled]:
    """Two factors of a · b · scale, each with as few dimensions as may be."""
    if scale is None:
        return [a, b]
    orders = ((b, scale, a), (a, scale, b), (a, b, scale))
    first, second, rest = min(orders, key=lambda o: len({*o[0][1], *o[1][1]}))
    return [rest, on_both(x, "multiply", first, second)]


def _multiple(x: Instruction, value: Instruction) -> tuple[Instruction, Labelled | None]:
    """The difference whose multiples are added, as in the gradient of d · d, and the sum of its factors."""
    for scale, rest in both_orders(value.operands) if value.opcode == "multiply" else ():
        if scale.is_broadcast and rest.opcode == "subtract":
            return rest, spread_factor(scale)
    if value.opcode == "add":
        found = [_multiple(x, o) for o in dict.fromkeys(value.operands)]
        (below, scaled), (other, more) = found[0], found[-1]
        if below is other and scaled and more:
            return below, on_both(x, "add", scaled, more)
    return value, None


def _multiply_differences(x: Instruction) -> bool:
    if x.is_dot:
        found = as_sum(x)
        return found is not None and _multiply_differences(found[0]) and replace(x, found[1])
    sizes = dict(enumerate(x.operand.sizes))
    value, multiple = _multiple(x, x.operand) if is_total(x) else (x, None)
    factors = terms_of(value, "multiply") if is_total(x) else []
    parts = [_terms(x, f) for f in factors[:4]]
    differences = [(f, p) for f, p in zip(factors, parts, strict=False) if len(p) > 1]
    scales = [p[0] for p in parts if len(p) == 1] + ([multiple] if multiple else [])
    is_square = len({f for f, _ in differences}) == 1 and len(differences) == 2
    if len(factors) != len(parts) or not (is_square or (len(differences) == 1 and scales)):
        return False
    scale = with_factors(x, scales[0], scales[1:]) if scales else None
    terms = differences[0][1]
    if is_square:
        pairs = [_scaled_pair(x, a, b, scale) for a, b in ((t, t) for t in terms)]
        pairs.append(_scaled_pair(x, terms[0], terms[1], scale))
    else:
        pairs = [[t, scale or t] for t in terms]
    is_whole = all({*a[1], *b[1]}.issuperset(x.dimensions) for a, b in pairs)
    if not is_whole or any(len(labels) == len(sizes) for pair in pairs for _, labels in pair):
        return False
    remaining = [d for d in sizes if d not in x.dimensions]
    sums = [contracted(x, a, b, remaining) for a, b in pairs]
    if all(not value.is_dot for value, _ in sums):
        return False
    values = [over(x, one, remaining, sizes) for one in sums]
    if is_square:
        values[2] = make.binary(x, "multiply", values[2], make.scalar_like(values[2], -2))
    return replace(x, fold(x, "add" if is_square else "subtract", values))


def root_for_power(x: Instruction) -> bool:
    """x to a power of quarters below 4, or one of these below 1, becomes products with square roots."""
    base = x.operand
    given = source(x.second)
    is_negated = given.opcode == "negate"  # where XLA divided by the power
    exponent = scalar_of(source(given.operand) if is_negated else given)
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


_AS_IT_IS = ("custom-call", "bitcast-convert", "rng-bit-generator", "infeed", "outfeed")
"""Operations that hang on the type of what they read or return."""


def _compute_narrow(x: Instruction) -> bool:
    """All that is computed in float64 from float32 is computed in float32."""
    if x.element_type != "f64" or x.operand.element_type != "f32":
        return False
    module = x.parent.parent
    entry = module.entry
    wide = [i for i in module.instructions() if _narrower(i.shape) != i.shape]
    given = [i for i in wide if i in entry.parameters]
    if any(p.rank for p in given) or any(has([i, *i.operands], *_AS_IT_IS) for i in wide):
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


_SCALING = ("multiply", "divide")
_MASKING = {*_SCALING, *values("dot add subtract select convert broadcast reshape transpose copy")}
"""Operations that cuDNN does between the scores and their exponential: a scale, a bias, a mask."""
_MOVED = ELEMENTWISE_OPCODES | {"broadcast", "reshape", "transpose", "copy"}
_FUSABLE = _MOVED | {"reduce"}


def _below(x: Instruction) -> Instructions:
    return origins(x, sys.maxsize, _FUSABLE)


def _is_masked(x: Instruction, scores: Instruction) -> bool:
    """True for scores that are scaled, biased and masked, less their greatest."""
    found = [i for i in origins(x, sys.maxsize, _MOVED) if scores in origins(i, sys.maxsize, _MOVED)]
    factors = (sum(o in found for o in i.operands) for i in found if i.opcode in _SCALING)
    return scores in found and max(factors, default=1) == 1 and _MASKING.issuperset(i.opcode for i in found)


def _before_widening(x: Instruction) -> Instruction:
    return x.operand if x.opcode == "convert" and x.element_type == "f32" else x


def _is_default(x: Instruction) -> bool:
    """True for a product of float32 that leaves its precision to XLA."""
    types = {o.element_type for o in (x, *x.operands)}
    return types == {"f32"} and not x.attributes.given("operand_precision", "algorithm")


def _round_operands(x: Instruction) -> bool:
    """Operands in float32 are rounded to bfloat16, and their products are summed in float32."""
    lhs, rhs = (make.convert(x, o, "bf16") for o in x.operands)
    return _is_default(x) and replace(x, dot_like(x, x.shape, lhs, rhs, DotDimensions.of(x)))


def _leave_precision(x: Instruction) -> bool:
    """A product leaves its precision to XLA: TF32 for float32 on a GPU that has it."""
    is_exact = "highest" in (x.raw("operand_precision") or "")
    x.attributes = x.attributes.without("operand_precision") if is_exact else x.attributes
    return is_exact


def _attend(scores: Instruction, *, rounded: bool = False) -> bool:
    """Products around a softmax become cuDNN's attention, and those of its gradient become its gradient.
    cuDNN takes float16 and bfloat16, heads of at most 256; `rounded`: of float32, rounded to bfloat16."""
    operands = [_before_widening(o) for o in scores.operands]
    dims = DotDimensions.of(scores)
    head = prod(scores.operand.sizes[d] for d in dims.lhs_contracting)
    is_taken = _is_default(scores) if rounded else {o.element_type for o in operands} in ({"bf16"}, {"f16"})
    if not is_taken or not dims.lhs_batch or head % 8 or head > 256:
        return False
    products = {}
    for x in scores.parent.post_order():
        for side in (0, 1) if x.is_dot and x is not scores else ():
            below = _below(x.operands[side])
            exponential = next((i for i in below if i.opcode == "exponential"), None)
            if exponential is None or not _is_masked(exponential.operand, scores):
                continue
            sums = (i for i in below if i.is_reduce and exponential in _below(i.operand))
            total = next(sums, None)
            along = DotDimensions.of(x).contracting(side)
            own, sizes = (without_ones(i.shape).dimensions for i in (x.operands[side], exponential))
            if total is None or own != sizes:
                return False
            is_gradient = any(i.is_dot and i is not scores for i in below)
            ends = (x.operands[side].rank - max(along), exponential.rank - max(total.dimensions))
            products[ends[0] == ends[1], is_gradient] = x, x.operands[1 - side]
    output = products.get((True, False))
    value = products.get((False, False))
    if output is None and value is None:
        return False
    narrow = "bf16" if rounded else operands[0].element_type
    config = json.dumps({"dimensions": [str(n) for n in scores.sizes]})
    raw = f'{{"cudnn_fmha_backend_config": {{"intermediate_tensor_shape": {config}}}}}'

    def call(name: str, given: Instructions, results: list[Shape]) -> Instructions:
        shape = Shape.tuple_of([*results, array("u8", [0])])
        texts = {"custom_call_target": f'"__cudnn$fmhaSoftmax{name}"', "backend_config": raw}
        given = [make.convert(scores, x, narrow) for x in given]
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


_ROWS = 8  # Sublanes of a TPU's tile


def _repeat_row(x: Instruction) -> bool:
    """A product of one row is taken of equal rows, as many as a tile has; alone it is a sum of elements."""
    factors, rows = labelled(x), x.rank
    order, sizes = [rows, *range(rows)], sizes_of(*factors) | {rows: _ROWS}
    for (row, labels), other in both_orders(factors):
        is_row = all(d < 0 or d in other[1] or sizes[d] == 1 for d in labels)
        is_matrix = any(d not in labels and sizes[d] > 1 for d in other[1])
        if is_row and is_matrix and other[0].byte_size >= MIN_BYTES:
            shape = array(row.element_type, [_ROWS, *row.sizes])
            equal = make.broadcast(x, shape, row, range(1, shape.rank)), [rows, *labels]
            whole = over(x, contracted(x, equal, other, order), order, sizes)
            return replace(x, make.part(x, whole, 0, 1))
    return False


RESTATED = {
    "multiply-narrow-sum-wide": Rewriting("dot", _narrow),
    "attention-by-cudnn": Rewriting("dot", _attend, "gpu", "cuDNN attention"),
    "attention-in-bfloat16": Rewriting("dot", partial(_attend, rounded=True), "gpu", rounds=True),
    "multiply-in-bfloat16": Rewriting("dot", _round_operands, "gpu", rounds=True),
    "multiply-in-tf32": Rewriting("dot", _leave_precision, "gpu", rounds=True),
    "add-the-small-products": Rewriting("dot", _add_products),
    "distances-by-a-product": Rewriting("reduce dot", _multiply_differences),
    "power-by-a-root": Rewriting("power", root_for_power),
    "power-by-squares": Rewriting("power", _by_squares),
    "sum-once": Rewriting("add", _sum_once),
    "column-variance-in-one-pass": Rewriting("reduce", sum_squares),
    "compute-in-float32": Rewriting("convert", _compute_narrow),
    "repeat-the-row": Rewriting("dot", _repeat_row, "tpu"),
    "use-the-structure": Rewriting("dot", _as_slices),
    "jvp-not-jacobian": Rewriting("dot", multiply_basis),
    "scale-not-diagonal": Rewriting("dot", _scale_each),
    "solve-small-by-cofactors": Rewriting("custom-call triangular-solve", _solve_small),
    "solve-triangular": Rewriting("custom-call triangular-solve", _solve_sparse),
    "svd-of-what-is-read": Rewriting("custom-call", _vectors_read, "cpu"),
    "multiply-not-sum": Rewriting("reduce", partial(product_of_sums, opcode="multiply")),
    "sum-before-the-product": Rewriting("reduce", partial(product_of_sums, opcode="dot")),
    "multiply-the-small-first": Rewriting("dot", _small_first),
    "solve-not-invert": Rewriting("dot", _solve_later),
    "group-not-repeat": Rewriting("dot", multiply_unrepeated),
    "multiply-before-the-repeat": Rewriting("dot", partial(multiply_unrepeated, of_rows=True)),
}
