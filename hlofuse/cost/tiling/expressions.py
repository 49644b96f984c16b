"""Integer expressions of index variables (`xla/hlo/analysis/symbolic_expr.h`). Expressions are interned:
equal ones are the same object, so they compare, hash and memoise by identity. A variable is a number; the map
that owns an expression separates dimensions from symbols. Operations are those of HLO indexing: sums,
products, floor divisions and remainders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import TypeAlias

# The order of kinds is XLA's `SymbolicExprType`: sums are printed in it.
ADD, MUL, MOD, FLOORDIV = 0, 1, 2, 3
VARIABLE, CONSTANT = 7, 8
_OPERATORS = {ADD: "+", MUL: "*", MOD: "mod", FLOORDIV: "/"}


class Expr:
    """A node: a constant or variable with `value`, or an operation on `lhs` and `rhs`."""

    __slots__ = ("_canonical", "kind", "lhs", "order", "rhs", "value")

    kind: int
    value: int
    lhs: Expr
    rhs: Expr
    order: tuple[object, ...]  # A key in the order of `SymbolicExpr::operator<`
    _canonical: Expr | None

    def __init__(
        self,
        kind: int,
        value: int,
        lhs: Expr | None = None,
        rhs: Expr | None = None,
    ) -> None:
        self.kind = kind
        self.value = value
        self._canonical = None
        if lhs is None or rhs is None:
            self.order = (kind, value)
        else:
            self.lhs = lhs
            self.rhs = rhs
            self.order = (kind, lhs.order, rhs.order)

    @property
    def is_multiple(self) -> bool:
        return self.kind == MUL and self.rhs.kind == CONSTANT


Exprs: TypeAlias = tuple[Expr, ...]
_interned = cache(Expr)
constant, variable = partial(_interned, CONSTANT), partial(_interned, VARIABLE)
ZERO, ONE = constant(0), constant(1)


def _binary(kind: int, lhs: Expr, rhs: Expr) -> Expr:
    """The node after the cheapest folding only (`CreateSymbolicBinaryOp`)."""
    if kind <= MUL and lhs.kind == CONSTANT:
        lhs, rhs = rhs, lhs
    if rhs.kind == CONSTANT:
        v = rhs.value
        if lhs.kind == CONSTANT:
            return constant(_fold(kind, lhs.value, v))
        if kind == ADD and v == 0:
            return lhs
        if kind == MUL:
            if v == 0:
                return rhs
            if v == 1:
                return lhs
            if lhs.is_multiple:
                return _binary(MUL, lhs.lhs, constant(lhs.rhs.value * v))
    return _interned(kind, 0, lhs, rhs)


def _fold(kind: int, a: int, b: int) -> int:
    if kind == ADD:
        return a + b
    if kind == MUL:
        return a * b
    return a // b if kind == FLOORDIV else a % b


def add(a: Expr, b: Expr | int) -> Expr:
    return _binary(ADD, a, constant(b) if isinstance(b, int) else b)


def mul(a: Expr, b: Expr | int) -> Expr:
    return _binary(MUL, a, constant(b) if isinstance(b, int) else b)


def floordiv(a: Expr, b: Expr | int) -> Expr:
    divisor = constant(b) if isinstance(b, int) else b
    return a if divisor is ONE else _binary(FLOORDIV, a, divisor)


def mod(a: Expr, b: Expr | int) -> Expr:
    modulus = constant(b) if isinstance(b, int) else b
    return ZERO if modulus.kind == CONSTANT and abs(modulus.value) == 1 else _binary(MOD, a, modulus)


def negate(a: Expr) -> Expr:
    return canonicalize(mul(a, -1))


def subtract(a: Expr, b: Expr) -> Expr:
    return add(a, negate(b))


def summands(expr: Expr) -> Iterator[Expr]:
    """The terms of an arbitrarily nested sum, left to right."""
    if expr.kind == ADD:
        yield from summands(expr.lhs)
        yield from summands(expr.rhs)
    else:
        yield expr


def variables_of(expr: Expr) -> set[int]:
    if expr.kind == VARIABLE:
        return {expr.value}
    if expr.kind == CONSTANT:
        return set()
    return variables_of(expr.lhs) | variables_of(expr.rhs)


def substitute(expr: Expr, values: Sequence[Expr]) -> Expr:
    """Variables replaced by number, without simplification (`ReplaceVariables`)."""
    if expr.kind == CONSTANT:
        return expr
    if expr.kind == VARIABLE:
        return values[expr.value] if expr.value < len(values) else expr
    lhs, rhs = substitute(expr.lhs, values), substitute(expr.rhs, values)
    return expr if lhs is expr.lhs and rhs is expr.rhs else _binary(expr.kind, lhs, rhs)


def canonicalize(expr: Expr) -> Expr:
    """XLA's canonical form, the start of every simplification (`SymbolicExpr::Canonicalize`)."""
    if expr.kind >= VARIABLE:
        return expr
    done = expr._canonical
    if done is None:
        done = expr._canonical = _canonicalize(expr.kind, canonicalize(expr.lhs), canonicalize(expr.rhs))
    return done


def _canonicalize(kind: int, lhs: Expr, rhs: Expr) -> Expr:
    if lhs.kind == CONSTANT and rhs.kind == CONSTANT:
        return constant(_fold(kind, lhs.value, rhs.value))
    if kind <= MUL and rhs.order < lhs.order:
        lhs, rhs = rhs, lhs
    if kind == ADD:
        return _canonical_sum(lhs, rhs)
    if kind == MUL:
        if rhs.kind == CONSTANT:
            if rhs.value == 0:
                return rhs
            if rhs.value == 1:
                return lhs
            if lhs.is_multiple:
                return canonicalize(mul(lhs.lhs, lhs.rhs.value * rhs.value))
        if lhs.is_multiple:
            return canonicalize(mul(mul(lhs.lhs, rhs), lhs.rhs))
        if lhs.kind == ADD:
            return canonicalize(add(mul(lhs.lhs, rhs), mul(lhs.rhs, rhs)))
        if rhs.kind == ADD:
            return canonicalize(add(mul(lhs, rhs.lhs), mul(lhs, rhs.rhs)))
        return _binary(MUL, lhs, rhs)
    return _canonical_floordiv(lhs, rhs) if kind == FLOORDIV else _canonical_mod(lhs, rhs)


def _base_and_factor(expr: Expr) -> tuple[Expr, int]:
    factor = 1
    while expr.is_multiple:
        factor *= expr.rhs.value
        expr = expr.lhs
    return expr, factor


def _canonical_sum(lhs: Expr, rhs: Expr) -> Expr:
    """The sum with equal terms collected, `x floordiv c * c*y + x mod c * y` joined, terms in order."""
    factors = dict[Expr, int]()
    rest = 0
    for part in (lhs, rhs):
        for term in summands(part):
            base, factor = _base_and_factor(term)
            if base.kind == CONSTANT:
                rest += base.value * factor
            else:
                factors[base] = factors.get(base, 0) + factor
    joined = list[Expr]()
    for base, factor in factors.items():
        if factor and base.kind == FLOORDIV and base.rhs.kind == CONSTANT:
            c = base.rhs.value
            if c > 0 and factor % c == 0:
                remainder = canonicalize(mod(base.lhs, base.rhs))
                if factors.get(remainder) == factor // c:
                    factors[base] = factors[remainder] = 0
                    joined.append(canonicalize(mul(base.lhs, factor // c)))
    terms = joined + [canonicalize(mul(base, factor)) for base, factor in factors.items() if factor]
    if rest:
        terms.append(constant(rest))
    if not terms:
        return ZERO
    terms.sort(key=lambda t: t.order)
    result = terms[0]
    for term in terms[1:]:
        result = _binary(ADD, result, term)
    return canonicalize(result) if joined else result


def largest_divisor(expr: Expr) -> int:
    """The largest number known to divide every value (`GetLargestKnownDivisor`)."""
    if expr.kind == VARIABLE:
        return 1
    if expr.kind == CONSTANT:
        return abs(expr.value)
    left, right = largest_divisor(expr.lhs), largest_divisor(expr.rhs)
    if expr.kind == MUL:
        return left * right
    if expr.kind == FLOORDIV:
        d = abs(expr.rhs.value) if expr.rhs.kind == CONSTANT else 0
        return left // d if d and left % d == 0 else 1
    return math.gcd(left, right)


def is_multiple_of(expr: Expr, factor: int) -> bool:
    return largest_divisor(expr) % abs(factor) == 0


def _common_factor(lhs: Expr, divisor: int) -> int:
    if lhs.is_multiple:
        return math.gcd(lhs.rhs.value, divisor)
    return 1


def _canonical_floordiv(lhs: Expr, rhs: Expr) -> Expr:
    if lhs is ZERO or rhs.kind != CONSTANT:
        return lhs if lhs is ZERO else _binary(FLOORDIV, lhs, rhs)
    d = rhs.value
    if d == 1:
        return lhs
    if d == -1:
        return negate(lhs)
    g = _common_factor(lhs, d)
    if g > 1:
        return canonicalize(floordiv(mul(lhs.lhs, lhs.rhs.value // g), d // g))
    if lhs.kind == ADD:
        a, b = lhs.lhs, lhs.rhs
        if CONSTANT in (a.kind, b.kind):
            const, other = (b, a) if b.kind == CONSTANT else (a, b)
            divisor = largest_divisor(other)
            # The constant's remainder cannot carry over a multiple of the divisor.
            if divisor > 1 and const.value % d < math.gcd(divisor, abs(d)):
                return canonicalize(add(floordiv(other, d), const.value // d))
        for whole, rest in ((a, b), (b, a)):
            if whole.is_multiple:
                base, factor = whole.lhs, whole.rhs.value
            elif whole.kind == CONSTANT:
                base, factor = ONE, whole.value
            else:
                continue
            if factor % d == 0:
                return canonicalize(add(mul(base, factor // d), floordiv(rest, d)))
    return _binary(FLOORDIV, lhs, rhs)


def _canonical_mod(lhs: Expr, rhs: Expr) -> Expr:
    if lhs is ZERO or lhs is rhs:
        return ZERO
    if rhs.kind != CONSTANT:
        return _binary(MOD, lhs, rhs)
    m = rhs.value
    if abs(m) == 1 or is_multiple_of(lhs, m):
        return ZERO
    g = _common_factor(lhs, m)
    if g > 1:
        return canonicalize(mul(mod(mul(lhs.lhs, lhs.rhs.value // g), m // g), g))
    if lhs.kind == MOD and lhs.rhs.kind == CONSTANT and lhs.rhs.value % m == 0:
        return canonicalize(mod(lhs.lhs, m))
    if lhs.kind == ADD:
        for whole, rest in ((lhs.lhs, lhs.rhs), (lhs.rhs, lhs.lhs)):
            if is_multiple_of(whole, m):
                return canonicalize(mod(rest, m))
    return _binary(MOD, lhs, rhs)


def _starts_negative(expr: Expr) -> bool:
    while expr.kind == ADD:
        expr = expr.lhs
    if expr.kind == CONSTANT:
        return expr.value < 0
    return expr.kind == MUL and any(e.kind == CONSTANT and e.value < 0 for e in (expr.lhs, expr.rhs))


def to_text(expr: Expr, names: Sequence[str] = ()) -> str:
    """The expression in XLA's form (`symbolic_map_serialization.cc`); `names` by number, else v0, v1 …"""
    return _print(expr, names, -1, False, False)


def _print(
    expr: Expr,
    names: Sequence[str],
    parent: int,
    right: bool,
    right_of_minus: bool,
) -> str:
    kind = expr.kind
    if kind == CONSTANT:
        return str(expr.value)
    if kind == VARIABLE:
        return names[expr.value] if expr.value < len(names) else f"v{expr.value}"
    if kind == MUL and expr.rhs.kind == CONSTANT and expr.rhs.value == -1:
        return "-" + _print(expr.lhs, names, MUL, False, False)
    parentheses = parent > ADD and kind == ADD
    if parent >= 0 and (kind == ADD) == (parent == ADD):
        if kind != parent:
            parentheses = True
        elif kind == ADD:
            parentheses = right_of_minus
        elif kind != MUL:
            parentheses = right
    left = _print(expr.lhs, names, kind, False, False)
    if kind == ADD and _starts_negative(expr.rhs):
        text = f"{left} - {_print(negate(expr.rhs), names, kind, True, True)}"
    else:
        text = f"{left} {_OPERATORS[kind]} {_print(expr.rhs, names, kind, True, False)}"
    return f"({text})" if parentheses else text
