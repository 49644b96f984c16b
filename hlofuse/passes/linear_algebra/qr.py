"""QR factorizations by Householder reflections (`xla/hlo/transforms/expanders/qr_expander.cc`)."""

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.builder import Op, Parts
from hlofuse.passes.common.rewriting import NotRepresentable
from hlofuse.passes.linear_algebra.expander import Expander, identity, require, triangle_mask

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
            return _factored(a)
        sizes = [(*batch, p) for p in range(n + 1)] if m >= n else []
        if custom_call_target(x) == "Qr" or [s.type for s in scales if s.sizes in sizes] != [a.type]:
            raise NotRepresentable("a call of other operands")
        require(x, (a.type, a.sizes))
        return _product(a, *scales)


def _factored(a: Op) -> Op:
    """`BuildQrDecomposition`: reflections below the triangle, and their scales."""
    *batch, m, n = a.sizes
    p = min(m, n)
    scales = a.b.full(a.type, (*batch, p))
    for i in range(0, p, _BLOCK):
        k = min(_BLOCK, p - i)
        block, block_scales = _unblocked(a.slice([i, i], [m, i + k]))
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


def _unblocked(a: Op) -> tuple[Op, Op]:
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
