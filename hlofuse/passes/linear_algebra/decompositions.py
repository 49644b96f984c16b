"""Eigenvalues of Hermitian matrices by Jacobi rotations (`xla/hlo/transforms/expanders/eigh_expander.cc`), QR
factorizations by Householder reflections (`qr_expander.cc`)."""

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import NotRepresentable
from hlofuse.passes.common.builder import COMPONENT, Builder, Op, Parts
from hlofuse.passes.common.literals import rounded
from hlofuse.passes.common.shapes import array
from hlofuse.passes.linear_algebra.triangular import (
    Expander,
    diagonal,
    diagonal_mask,
    identity,
    require,
    symmetrized,
    triangle_mask,
    with_diagonal,
)

_TINY = (rounded("f32", 0.1) or 0) * 2.0**-23
"""A tenth of the distance from 1 to the next f32."""


class EighExpander(Expander):
    """The first of several calls on a shape says for all how they iterate, as in XLA."""

    name = "eigh_expander"
    kinds = ("Eigh",)

    def root(self, x: Instruction, operands: list[Op]) -> Op:
        config = (x.attributes.raw("backend_config") or "").strip('"').split(",")
        try:
            lower, is_sorted, most = map(int, config[:3])
            (tolerance,) = map(float, config[3:])
        except ValueError:
            raise NotRepresentable("a backend config that has not the four numbers of Eigh") from None
        a = operands[0]
        require(x, (a.type, (*a.sizes[:-1], a.sizes[-2])), (COMPONENT.get(a.type, a.type), a.sizes[:-1]))
        if a.sizes[-1] <= 1:
            return a.b.tuple_of([a.filled(1), diagonal(a.unary("real"))])
        return _decompose(symmetrized(a, lower=bool(lower)), bool(is_sorted), most, tolerance)


def _decompose(a: Op, is_sorted: bool, most: int, tolerance: float) -> Op:
    """`BuildEigh`, of at least two rows."""
    b, n, rows, columns = a.b, a.sizes[-1], a.rank - 2, a.rank - 1
    k = -(-n // 2)
    quarters = [a.slice(*c) for c in (([0, 0], [k, k]), ([k, 0], [n, k]), ([0, k], [k, n]), ([k, k], [n, n]))]
    tl, bl, tr, br = quarters
    if n % 2:
        zero = b.constant(a.type, 0)
        tr, bl = tr.pad({}, {columns: 1}, zero), bl.pad({}, {rows: 1}, zero)
        br = br.pad({}, {rows: 1, columns: 1}, zero)
    eye = identity(b, a.type, k, k).prepended(a.sizes[:-2])
    zeros, limit = eye.filled(), a.unary("real").scalar(rounded("f32", tolerance) or 0)
    init = [b.constant("s32", 0), limit, tl, tr, bl, br, eye, zeros, zeros, eye]
    names = "EighJacobiSweeps_condition", "EighJacobiSweeps_body", "parameter", "parameter"

    def sweep(values: Parts) -> Parts:
        count, *others = values
        others = count.b.for_each(2 * k - 1, others, lambda _, v: [v[0], *_rotate(v[1:])], "ApplyRotations")
        return [count + 1, *others]

    _, _, tl, _, _, br, v_tl, v_tr, v_bl, v_br = b.loop(init, lambda v: _goes_on(v, most), sweep, names)
    w = diagonal(tl.unary("real")).concatenated([diagonal(br.unary("real"))], rows)
    v = v_tl.concatenated([v_tr], columns).concatenated([v_bl.concatenated([v_br], columns)], rows)
    if n % 2:
        w, v = w.slice([0], [n]), v.slice([0, 0], [n, n])
    v = v.transpose().conjugate()
    return b.tuple_of(_sort(v, w) if is_sorted else [v, w])


def _goes_on(values: Parts, most: int) -> Op:
    """Until what is off the diagonal is small (`ComputeFrobeniusNorms`)."""
    count, tolerance, *matrices = values[:6]
    rank, goes_on = matrices[0].rank, count.compare("LT", most)
    zero = matrices[0].unary("real").scalar(0)

    def norm(parts: Parts) -> Op:
        first, *others = [(x * x.conjugate()).unary("real") for x in parts]
        for x in others:
            first += x
        return first.sum([rank - 2, rank - 1], zero)

    def off(x: Op) -> Op:
        return diagonal_mask(x).select(x.filled(), x)

    whole = norm(matrices)
    rest = norm([off(matrices[0]), *matrices[1:3], off(matrices[3])])
    left = (whole * (tolerance * tolerance)).compare("LT", rest)
    return goes_on.binary("and", left.sum(range(left.rank)))


def _rotated_by(quarters: Parts, cosine: Op, sine: Op, *, columns: bool) -> Parts:
    """`ApplyJacobiRotationOverRows`, `ApplyJacobiRotationOverCols`"""
    tl, tr, bl, br = quarters
    own = [*range(tl.rank - 2), tl.rank - (1 if columns else 2)]
    c, s = (x.broadcast(tl.sizes, own) for x in (cosine, sine))
    t = s.conjugate()
    if columns:
        return [tl * c - tr * s, tl * t + tr * c, bl * c - br * s, bl * t + br * c]
    return [tl * c - bl * t, tr * c - br * t, tl * s + bl * c, tr * s + br * c]


def _rotation(tl: Op, tr: Op, br: Op) -> Parts:
    """Eigenvalues, cosines and sines for pairs of rows and columns (`HermitianEigenDecomposition2x2`)."""
    is_complex = tl.is_complex
    tl, tr, br = diagonal(tl.unary("real")), diagonal(tr), diagonal(br.unary("real"))
    zero, one, two = (tl.scalar(k) for k in range(3))
    phase = tr
    if is_complex:
        size = tr.unary("abs")
        phase = tr.conjugate() / size.complex(size.filled())
        phase = size.compare("EQ", size.filled()).select(tr.filled(1), phase)
        tr = size
    tau = (br - tl) / (two * tr)
    t = (one + tau * tau).unary("sqrt")
    t = tau + tau.compare("GE", zero).select(t, -t)
    t = t.scalar(1) / t
    least = tr.scalar(_TINY) * tl.unary("abs").binary("minimum", br.unary("abs"))
    t = tr.unary("abs").compare("LE", least).select(t.filled(), t)
    c = (one + t * t).unary("rsqrt")
    parts = [tl - t * tr, br + t * tr, c, t * c]
    if is_complex:
        parts = [x.complex(x.filled()) for x in parts]
        parts[3] *= phase
    return parts


def _rotate(values: Parts) -> Parts:
    """`ApplyRotations`, of the matrix and of the eigenvectors."""
    w, v = values[:4], values[4:]
    first, second, c, s = _rotation(w[0], w[1], w[3])
    w = _rotated_by(_rotated_by(w, c, s, columns=False), c, s, columns=True)
    diagonals = first, first.filled(), first.filled(), second
    w = [with_diagonal(x, values) for x, values in zip(w, diagonals, strict=True)]
    w = [*_exchange(w[0], w[1], columns=True), *_exchange(w[2], w[3], columns=True)]
    v = _rotated_by(v, c, s, columns=False)
    for x in (w, v):
        for k in (0, 1):
            x[k], x[k + 2] = _exchange(x[k], x[k + 2], columns=False)
    return [*w, *v]


def _exchange(first: Op, second: Op, *, columns: bool) -> tuple[Op, Op]:
    """The next round of a tournament (`PermuteRowsInColumn`, `PermuteColumnsInRow`)."""
    k = first.sizes[-1]
    if k <= 1:
        return first, second

    def cut(x: Op, start: int, end: int) -> Op:
        return x.slice([start], [end]) if columns else x.slice([start, 0], [end, k])

    dimension = first.rank - (1 if columns else 2)
    return (
        cut(first, 0, 1).concatenated([cut(second, 0, 1), cut(first, 1, k - 1)], dimension),
        cut(second, 1, k).concatenated([cut(first, k - 1, k)], dimension),
    )


def _sort(v: Op, w: Op) -> Parts:
    """`SortByEigenvalues`"""
    last = v.rank - 1
    w = w.broadcast(v.sizes, [*range(last - 1), last])
    shape, less = Shape.tuple_of([w.x.shape, v.x.shape]), _less(v.b, v.type)
    w, v = v.b.op("sort", shape, [w, v], [("to_apply", less)], dimensions=[last]).parts()
    return [v, diagonal(w)]


def _less(b: Builder, element_type: str) -> Computation:
    """`CreateScalarLtComputation`"""
    inner, types = (
        Builder(b.module, "compare-less-than"),
        (COMPONENT.get(element_type, element_type), element_type),
    )
    sides = [
        inner.parameter(2 * k + side, array(of), f"p.{k}.{name}")
        for k, of in enumerate(types)
        for side, name in enumerate(("lhs", "rhs"))
    ]
    raw = {"direction": "LT", "type": "TOTALORDER"}
    return inner.build(sides[0].binary("compare", sides[1], element_type="pred", raw=raw))


_BLOCK = 128


class QrExpander(Expander):
    name = "qr_expander"
    names = ("a", "taus")
    kinds = ("Qr", "ProductOfElementaryHouseholderReflectors")

    def root(self, x: Instruction, operands: list[Op]) -> Op:
        a, *scales = operands
        *batch, m, n = a.sizes
        if custom_call_target(x) == "Qr" and not scales:
            require(x, (a.type, a.sizes), (a.type, (*batch, min(m, n))))
            return _factor(a)
        sizes = [(*batch, p) for p in range(n + 1)] if m >= n else []
        if custom_call_target(x) == "Qr" or [s.type for s in scales if s.sizes in sizes] != [a.type]:
            raise NotRepresentable("a call of other operands")
        require(x, (a.type, a.sizes))
        return _product(a, *scales)


def _factor(a: Op) -> Op:
    """`BuildQrDecomposition`: reflections below the triangle, and their scales."""
    *batch, m, n = a.sizes
    p = min(m, n)
    scales = a.b.full(a.type, (*batch, p))
    for i in range(0, p, _BLOCK):
        k = min(_BLOCK, p - i)
        block, block_scales = _factor_unblocked(a.slice([i, i], [m, i + k]))
        y = _reflections(block)
        a, scales = a.updated(block, [i, i]), scales.updated(block_scales, [i])
        t = _compact(y, block_scales)
        yt = y.dot(t.conjugate(), transpose_other=True)
        panel = a.slice([i, i + k], [m, n])
        panel += yt.dot(y.conjugate().dot(panel, transpose=True))
        a = a.updated(panel, [i, i + k])
    return a.b.tuple_of([a, scales])


def _product(a: Op, scales: Op) -> Op:
    """`ProductOfElementaryHouseholderReflectors`"""
    *batch, m, n = a.sizes
    p = scales.sizes[-1]
    q = identity(a.b, a.type, m, n).prepended(batch)
    for i in reversed(range(0, p, _BLOCK)):
        k = min(_BLOCK, p - i)
        y = _reflections(a.slice([i, i], [m, i + k]))
        t = _compact(y, scales.slice([i], [i + k]))
        panel = q.slice([i, i], [m, n])
        panel += y.dot(t.dot(y.conjugate().dot(panel, transpose=True)))
        q = q.updated(panel, [i, i])
    return q


def _reflections(block: Op) -> Op:
    below = triangle_mask(block, -1).select(block, block.filled())
    eye = identity(block.b, block.type, *block.sizes[-2:])
    return eye.binary("add", below, [block.rank - 2, block.rank - 1])


def _compact(y: Op, scales: Op) -> Op:
    """`CompactWYRepresentation` of a product of reflections, a column in each iteration."""
    *batch, _, n = y.sizes
    spread = (-scales).broadcast((*batch, 1, n), [*range(len(batch)), len(batch) + 1])
    eye = identity(y.b, y.type, n, n).prepended(batch)
    products = y.conjugate().dot(y, transpose=True)
    products = triangle_mask(products, 0).select(products.filled(), products)
    products = (products + eye) * spread

    def column(j: Op, values: Parts) -> Parts:
        t, given = values
        part = t.dot(given.dynamic_slice(given.minor_starts([j]), (*given.sizes[:-1], 1)))
        return [t.dynamically_updated(part, t.minor_starts([j])), given]

    return y.b.for_each(n, [eye, products], column, "wy")[0]


def _factor_unblocked(a: Op) -> tuple[Op, Op]:
    """`QrBlock`, a column in each iteration."""
    *batch, m, n = a.sizes
    own = range(len(batch))
    last = len(batch)

    def column(j: Op, values: Parts) -> Parts:
        (a, scales), b = values, j.b
        x = a.dynamic_slice(a.minor_starts([j]), (*batch, m, 1))
        v, scale, beta = _house(x.reshape((*batch, m)), j)
        columns = b.iota("s32", (*batch, m, n), last + 1)
        row = v.reshape((*batch, 1, m))
        update = row.conjugate().dot(j.compare("LT", columns).select(a, a.filled()))
        update = row.dot(update, transpose=True)
        a -= scale.conjugate().binary("multiply", update, own)
        rows = b.iota("s32", [m]).reshape([m, 1])
        before = rows.compare("LT", j).convert(a.type)
        at = rows.compare("EQ", j).convert(a.type).prepended([1] * len(batch))
        after = b.iota("s32", [m]).compare("GT", j)
        new = x.binary("multiply", before, [last, last + 1])
        new += beta.convert(a.type).binary("multiply", at, own)
        new = new.binary("add", after.prepended(batch).select(v, v.filled()), [*own, last])
        new = new.broadcast((*batch, m, n), range(a.rank))
        a = columns.compare("EQ", j).select(new, a)
        numbers, zeros = b.iota("s32", scales.sizes, last), scales.filled()
        scales += numbers.compare("EQ", j).select(zeros.binary("add", scale, own), zeros)
        return [a, scales]

    p = min(m, n)
    a, scales = a.b.for_each(p, [a, a.b.full(a.type, (*batch, p))], column, "qr")
    return a, scales


def _house(x: Op, k: Op) -> tuple[Op, Op, Op]:
    """`House`: the vector, the scale and what a reflection leaves of column `k`."""
    *batch, m = x.sizes
    last, zero = len(batch), x.scalar(0)
    alpha = x.dynamic_slice(x.minor_starts([k]), (*batch, 1)).reshape(batch)
    rows = x.b.iota("s32", [m])
    after = x.binary("multiply", rows.compare("GT", k).convert(x.type), [last])
    if x.is_complex:
        squares = (after * after.conjugate()).unary("real")
        total = squares.sum([last])
        length = _norm([alpha.unary("real"), alpha.unary("imag"), total.unary("sqrt")])
        is_zero = total.compare("EQ", 0)
        is_zero = is_zero.binary("and", alpha.unary("imag").compare("EQ", total.scalar(0)))
        sign = alpha.unary("real").compare("LT", total.scalar(0)).select(length.scalar(1), length.scalar(-1))
        beta = is_zero.select(alpha.unary("real"), sign * length)
        scale = ((beta - alpha.unary("real")) / beta).complex(-alpha.unary("imag") / beta)
    else:
        total = (after * after).sum([last], zero)
        length = _norm([alpha, total.unary("sqrt")])
        is_zero = total.compare("EQ", zero)
        one = x.scalar(1)
        beta = is_zero.select(alpha, alpha.compare("LT", zero).select(one, -one) * length)
        scale = (beta - alpha) / beta
    scale = is_zero.select(scale.filled(), scale)
    divisor = is_zero.select(alpha.scalar(1).prepended(batch), alpha - beta.convert(x.type))
    unit = rows.compare("EQ", k).convert(x.type).prepended([1] * last)
    return unit + after.binary("divide", divisor, range(last)), scale, beta


def _norm(xs: Parts) -> Op:
    """`Norm`, scaled by the largest."""
    xs = [x.unary("abs") for x in xs]
    largest = xs[0]
    for x in xs[1:]:
        largest = largest.binary("maximum", x)
    shares = [x / largest for x in xs]
    total = shares[0] * shares[0]
    for share in shares[1:]:
        total += share * share
    zero = largest.compare("EQ", largest.filled())
    return zero.select(largest.filled(), largest * total.unary("sqrt"))
