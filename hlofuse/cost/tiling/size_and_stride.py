"""Number and distance of the values of an index expression inside a tile
(`xla/codegen/tiling/size_and_stride_expression.cc`). Variable i of a result is a tile's size."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from .constraints import ALWAYS, NEVER, Condition, both, either, one, simplify
from .expressions import (
    ADD,
    CONSTANT,
    FLOORDIV,
    MOD,
    MUL,
    ONE,
    VARIABLE,
    ZERO,
    Expr,
    Exprs,
    add,
    constant,
    floordiv,
    mod,
    mul,
    negate,
    substitute,
    subtract,
    summands,
)
from .indexing_map import IndexingMap, simplify_keeping_points
from .simplifier import Interval, Simplifier

Dims = Sequence[Interval]


@dataclass(frozen=True, slots=True)
class SizeAndStride:
    """Number of values, their distance, and the condition for both."""

    size: Expr
    stride: Expr
    condition: Condition = ALWAYS
    extent: int = 1  # The largest size; 0 for that of a dimension that does not start at 0


def size_and_stride(expr: Expr, dims: Dims, symbols: Dims, gaps: bool) -> SizeAndStride | None:
    """None where the values are not evenly spaced, or XLA cannot tell (`ExtractSizeAndStride`). With `gaps`,
    partly sliced rows are so by tiles of one row or column (`VerifyReshapeContiguity`)."""
    kind = expr.kind
    if kind == CONSTANT:
        return SizeAndStride(ONE, ZERO)
    if kind == VARIABLE:
        lo, hi = (*dims, *symbols)[expr.value]
        extent = hi + 1 if lo == 0 else 0
        if expr.value < len(dims):
            return SizeAndStride(expr, ONE, extent=extent)
        return SizeAndStride(constant(extent), ONE, extent=extent) if extent else None
    if kind == MUL:
        inner = size_and_stride(expr.lhs, dims, symbols, gaps)
        # The releases without gaps forget the condition of the factor.
        condition = inner.condition if inner and gaps else ALWAYS
        return inner and SizeAndStride(inner.size, mul(inner.stride, expr.rhs), condition, inner.extent)
    if kind == ADD:
        parts = [size_and_stride(e, dims, symbols, gaps) for e in summands(expr)]
        return None if None in parts else _sum_size_and_stride([p for p in parts if p], gaps)
    if expr.rhs.kind != CONSTANT:
        return None
    divided = expr.lhs.lhs if kind == MOD and expr.lhs.kind == FLOORDIV else expr.lhs
    tile = _divided(divided, dims, symbols, gaps)
    if tile is None or (divided is not expr.lhs and expr.lhs.rhs.kind != CONSTANT):
        return None
    if divided is not expr.lhs:
        tile = _quotients(tile, expr.lhs.rhs)
    return _quotients(tile, expr.rhs) if kind == FLOORDIV else _remainders(tile, expr.rhs)


def _divided(expr: Expr, dims: Dims, symbols: Dims, gaps: bool) -> SizeAndStride | None:
    """The tile of a dimension, or with `gaps` of a whole symbol or of one value at an offset."""
    shift = 0
    if gaps and expr.kind == ADD and expr.rhs.kind == CONSTANT and expr.rhs.value >= 0:
        expr, shift = expr.lhs, expr.rhs.value
    if expr.kind != VARIABLE or (expr.value >= len(dims) and not gaps):
        return None
    tile = size_and_stride(expr, dims, symbols, gaps)
    if tile is None or not shift:
        return tile
    return SizeAndStride(tile.size, ONE, one(tile.size, (1, 1)), tile.extent and tile.extent + shift)


def _quotients(tile: SizeAndStride, divisor: Expr) -> SizeAndStride:
    most = (tile.extent - 1) // divisor.value + 1
    return SizeAndStride(floordiv(add(tile.size, add(divisor, -1)), divisor), ONE, tile.condition, most)


def _remainders(tile: SizeAndStride, modulus: Expr) -> SizeAndStride:
    """The tile divides the modulus or is a multiple."""
    size = subtract(tile.size, mul(floordiv(add(tile.size, -1), modulus), modulus))
    divides = either(one(mod(modulus, tile.size), (0, 0)), one(mod(tile.size, modulus), (0, 0)))
    return SizeAndStride(size, ONE, both(tile.condition, divides), min(modulus.value, tile.extent))


def _sum_size_and_stride(parts: list[SizeAndStride], gaps: bool) -> SizeAndStride | None:
    condition = ALWAYS
    size = ONE
    for part in parts:
        condition = both(condition, part.condition)
        size = mul(size, part.size)
        if part.stride.kind != CONSTANT or not part.extent:
            return None
        if not gaps and part.size.kind not in (CONSTANT, VARIABLE):
            return None
    parts = sorted(parts, key=lambda p: -abs(p.stride.value))
    whole = list[bool]()
    for i, part in enumerate(parts):
        step = abs(parts[i - 1].stride.value) if i else 0
        whole.append(i == 0 or part.extent * abs(part.stride.value) == step)
        # Each part has to fill the step of the one before it, or to stay within it.
        if not whole[-1] and not (gaps and (part.extent - 1) * abs(part.stride.value) < step):
            return None
    stride = ZERO
    for part in parts:
        stride = _unless_one(part.size, part.extent, part.stride, stride)
    contiguous = _contiguous(parts, whole)
    return SizeAndStride(size, stride, both(condition, simplify(contiguous) if gaps else contiguous))


def _unless_one(size: Expr, extent: int, otherwise: Expr, if_one: Expr) -> Expr:
    """`if_one` where size is 1, else `otherwise`; size is between 1 and extent (`IfNeqOne`)."""
    is_one = floordiv(subtract(constant(extent + 1), size), extent)
    return add(mul(is_one, if_one), mul(add(negate(is_one), 1), otherwise))


def _contiguous(parts: list[SizeAndStride], whole: list[bool]) -> Condition:
    """The condition, from the largest stride: ones, any size, full (only a `whole` one) dimensions, ones."""
    condition = NEVER
    count = len(parts)
    for partial in range(count):
        for full in range(count - partial):
            if not all(whole[partial + 1 : partial + full + 1]):
                break
            conjunction = ALWAYS
            for i, part in enumerate(parts):
                if i != partial:
                    value = part.extent if partial < i <= partial + full else 1
                    conjunction = both(conjunction, one(part.size, (value, value)))
            condition = either(condition, conjunction)
    return condition


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicTile:
    """Offset, size and stride in each dimension of the array; variable i is tiling parameter i
    (`xla/codegen/tiling/symbolic_tile.h`). Strides hold for parameters up to `limits`."""

    rank: int
    offsets: Exprs
    sizes: Exprs
    strides: Exprs
    limits: tuple[int, ...]
    condition: Condition


@cache
def symbolic_tile(m: IndexingMap, gaps: bool = False) -> SymbolicTile | None:
    """The tile of a map, None where it has none (`SymbolicTile::FromIndexingMap`)."""
    m = simplify_keeping_points(m)
    # A bound from above on a result itself only means padding; others are not understood.
    if any(lo != 0 or expr not in m.results for expr, (lo, _) in m.constraints):
        return None
    simplifier = Simplifier(m.bounds, dict(m.constraints), replace_points=False)
    offsets = tuple(substitute(e, [ZERO] * len(m.bounds)) for e in m.results)
    sizes = list[Expr]()
    strides = list[Expr]()
    condition = ALWAYS
    for expr, offset in zip(m.results, offsets, strict=True):
        part = size_and_stride(
            simplifier.simplify(add(expr, constant(-offset.value))), m.dims, m.symbols, gaps
        )
        if part is None:
            return None
        sizes.append(part.size)
        strides.append(part.stride)
        condition = both(condition, part.condition)
    limits = tuple(hi + 1 for _, hi in m.dims)
    return SymbolicTile(len(m.dims), offsets, tuple(sizes), tuple(strides), limits, simplify(condition))
