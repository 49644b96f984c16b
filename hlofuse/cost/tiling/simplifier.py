"""Simplification of expressions by the ranges of their variables (`SymbolicExprSimplifier` in
`xla/hlo/analysis/indexing_map.cc`). The rules run in XLA's order, because the resulting forms decide which
tiles can be derived and are printed in refusals."""

import math
from collections.abc import Callable, Mapping, Sequence

from .expressions import (
    ADD,
    CONSTANT,
    FLOORDIV,
    MOD,
    MUL,
    VARIABLE,
    ZERO,
    Expr,
    add,
    canonicalize,
    constant,
    floordiv,
    mod,
    mul,
    summands,
)

Interval = tuple[int, int]  # Lower and upper bound, both included; empty if the upper one is smaller


def intersect(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), min(a[1], b[1])


def contains(outer: Interval, inner: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


class Simplifier:
    """Simplifies under the given variable bounds and caches ranges. `tables` narrow the range of expressions;
    `replace_points`: one with a single value becomes it (`SimplifyPointDimensions::kReplace`)."""

    def __init__(
        self,
        bounds: Sequence[Interval],
        ranges: Mapping[Expr, Interval] | None = None,
        replace_points: bool = True,
    ) -> None:
        self._bounds = bounds
        self._expression_ranges = ranges or {}
        self._replace_points = replace_points
        self._ranges = dict[Expr, Interval]()

    def range_of(self, expr: Expr) -> Interval:
        """The values `expr` can take (`RangeEvaluator::ComputeExpressionRange`)."""
        kind = expr.kind
        if kind == CONSTANT:
            return expr.value, expr.value
        if kind == VARIABLE:
            return self._bounds[expr.value]
        if (found := self._ranges.get(expr)) is not None:
            return found
        lo, hi = self.range_of(expr.lhs)
        a, b = self.range_of(expr.rhs)
        if kind == ADD:
            result = lo + a, hi + b
        elif kind == MUL:
            products = (lo * a, lo * b, hi * a, hi * b)
            result = min(products), max(products)
        elif kind == MOD:
            result = (lo, hi) if lo >= 0 and hi < a else (0, a - 1)
        else:
            result = (lo // a, hi // a) if lo // a <= hi // a else (hi // a, lo // a)
        if (extra := self._expression_ranges.get(expr)) is not None:
            result = intersect(result, extra)
        self._ranges[expr] = result
        return result

    def simplify(self, expr: Expr) -> Expr:
        while True:
            canonical = canonicalize(expr)
            expr = self._once(canonical)
            if expr is canonical:
                return expr

    def _once(self, expr: Expr) -> Expr:
        kind = expr.kind
        if kind == CONSTANT:
            return expr
        if self._replace_points:
            lo, hi = self.range_of(expr)
            if lo == hi:
                return constant(lo)
        if kind == ADD:
            return self._sum(expr)
        if kind == MUL:
            return self._product(expr)
        if kind == MOD:
            return self._mod(expr)
        return self._floordiv(expr) if kind == FLOORDIV else expr

    def _right_constant(self, expr: Expr, kind: int) -> int | None:
        if expr.kind != kind:
            return None
        lo, hi = self.range_of(expr.rhs)
        return lo if lo == hi else None

    def _map_summands(self, expr: Expr, fn: Callable[[Expr], Expr]) -> Expr:
        if expr.kind != ADD:
            return fn(expr)
        lhs, rhs = self._map_summands(expr.lhs, fn), self._map_summands(expr.rhs, fn)
        return expr if lhs is expr.lhs and rhs is expr.rhs else add(lhs, rhs)

    def split_by_gcd(self, expr: Expr) -> tuple[Expr, int, Expr]:
        """`expr` as a·gcd + b, where b are the summands without a factor (`SplitSumByGcd`)."""
        gcd: int | None = None
        for term in summands(expr):
            factor = self._right_constant(term, MUL)
            if factor is not None:
                gcd = factor if gcd is None else math.gcd(gcd, factor)
        if gcd is None or gcd == 1:
            return ZERO, 1, expr
        divisor, rest = gcd, ZERO

        def scale(term: Expr) -> Expr:
            nonlocal rest
            if (factor := self._right_constant(term, MUL)) is not None:
                return mul(term.lhs, factor // divisor)
            rest = add(rest, term)
            return ZERO

        return self._map_summands(expr, scale), divisor, rest

    def _mod(self, expr: Expr) -> Expr:
        m, m_hi = self.range_of(expr.rhs)
        if m != m_hi:
            return expr
        if m == 0:
            return ZERO
        lhs = self._once(expr.lhs)
        lo, hi = self.range_of(lhs)
        offset = lo // m * -m
        if hi + offset < m:
            return add(lhs, offset)
        factor = self._right_constant(lhs, MUL)
        if factor is not None and factor > 0 and m % factor == 0:
            return mul(mod(lhs.lhs, m // factor), factor)
        fixed = 0

        def drop_multiples(term: Expr) -> Expr:
            nonlocal fixed
            if term.kind == CONSTANT:
                fixed += term.value
                return ZERO
            factor = self._right_constant(term, MUL)
            return ZERO if factor is not None and factor % m == 0 else term

        inner = self._map_summands(lhs, drop_multiples)
        if fixed % m:
            inner = add(inner, fixed % m)
        scaled, gcd, rest = self.split_by_gcd(inner)
        if gcd != 1 and m % gcd == 0:
            rest_range = self.range_of(rest)
            if rest_range == (0, 0):
                return mul(mod(scaled, m // gcd), gcd)
            if contains((0, gcd - 1), rest_range):
                return add(mod(mul(scaled, gcd), expr.rhs), rest)
        return expr if inner is expr.lhs else mod(inner, m)

    def _floordiv(self, expr: Expr) -> Expr:
        d, d_hi = self.range_of(expr.rhs)
        lhs = self._once(expr.lhs)
        if d != d_hi:
            return floordiv(lhs, self._once(expr.rhs))
        if d > 1:
            inner = self._right_constant(lhs, MOD)
            if inner is not None and inner % d == 0:
                return mod(floordiv(lhs.lhs, d), inner // d)
            inner = self._right_constant(lhs, FLOORDIV)
            if inner is not None:
                return floordiv(lhs.lhs, d * inner)
            if (result := self._floordiv_of_sum(lhs, d)) is not None:
                return result
        return floordiv(lhs, d) if lhs is not expr.lhs else expr

    def _floordiv_of_sum(self, dividend: Expr, d: int) -> Expr | None:
        constant_part = ZERO

        def take_out(term: Expr) -> Expr:
            nonlocal constant_part
            factor = self._right_constant(term, MUL)
            if factor is not None and factor % d == 0:
                constant_part = add(constant_part, mul(term.lhs, factor // d))
                return ZERO
            if term.kind == CONSTANT and term.value // d:
                constant_part = add(constant_part, term.value // d)
                return constant(term.value % d)
            return term

        inner = self._map_summands(dividend, take_out)
        scaled, gcd, rest = self.split_by_gcd(inner)
        common = math.gcd(d, gcd)
        lo, hi = self.range_of(rest)
        if common != 1 and contains((0, common - 1), (lo, hi)):
            inner = mul(scaled, gcd // common)
            d //= common
        elif lo == hi != 0:
            common = math.gcd(lo, common)
            if common != 1:
                inner = add(mul(scaled, gcd // common), lo // common)
                d //= common
        divisors = [c for t in summands(inner) if (c := self._right_constant(t, FLOORDIV)) is not None]
        if len(divisors) == 1:
            # One inner division only: with two, rounding each differs from rounding the sum.
            (c,) = divisors
            inner = self._map_summands(
                inner, lambda t: t.lhs if self._right_constant(t, FLOORDIV) is not None else mul(t, c)
            )
            d *= c
        return add(floordiv(inner, d), constant_part) if inner is not dividend else None

    def _product(self, expr: Expr) -> Expr:
        factor, hi = self.range_of(expr.rhs)
        if factor != hi:
            return expr
        lhs = self._once(expr.lhs)
        if lhs.kind == ADD:
            return self._map_summands(lhs, lambda t: mul(t, factor))
        if factor == 1:
            return lhs
        return expr if lhs is expr.lhs else mul(lhs, factor)

    def _sum(self, expr: Expr) -> Expr:
        """The sum with equal summands collected, quotients joined with remainders (`RewriteSum`)."""
        mods = list[tuple[Expr, int]]()
        divs = list[tuple[Expr, int]]()
        factors = dict[Expr, int]()
        for term in summands(expr):
            term = self._once(term)
            factor = self._right_constant(term, MUL)
            base, factor = (term, 1) if factor is None else (term.lhs, factor)
            if base.kind == MOD:
                mods.append((base, factor))
            elif base.kind == FLOORDIV:
                divs.append((base, factor))
            else:
                factors[base] = factors.get(base, 0) + factor
        if divs:
            self._join(mods, divs, factors)
        for base, factor in (*mods, *divs):
            factors[base] = factors.get(base, 0) + factor
        terms = [mul(base, factor) for base, factor in factors.items()]
        terms.sort(key=lambda t: t.order)
        result = ZERO
        for term in terms:
            result = add(result, term)
        return result

    def _join(
        self, mods: list[tuple[Expr, int]], divs: list[tuple[Expr, int]], factors: dict[Expr, int]
    ) -> None:
        for base, factor in [*mods]:
            c = self._right_constant(base, MOD)
            if c is None:
                continue
            whole = self.simplify(floordiv(base.lhs, c)), factor * c
            if whole in divs:
                divs.remove(whole)
                mods.remove((base, factor))
                factors[base.lhs] = factors.get(base.lhs, 0) + factor

    def narrow(self, expr: Expr, interval: Interval) -> tuple[Expr, Interval]:
        """The constraint `expr in interval` on a simpler expression (`SimplifyConstraintRange`)."""
        while expr.kind in (ADD, MUL, FLOORDIV):
            lo, hi = interval
            c, c_hi = self.range_of(expr.rhs)
            if c != c_hi or (c <= 0 and expr.kind != ADD):
                break
            if expr.kind == ADD:
                interval = lo - c, hi - c
            else:
                interval = (-(-lo // c), hi // c) if expr.kind == MUL else (lo * c, (hi + 1) * c - 1)
            expr = expr.lhs
        return expr, interval
