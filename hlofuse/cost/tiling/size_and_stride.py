"""Number and distance of the values of an index expression inside a tile
(`xla/codegen/tiling/size_and_stride_expression.cc`). Variable i of a result is a tile's size."""

from collections.abc import Sequence
from dataclasses import dataclass

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


def size_and_stride(expr: Expr, dims: Dims, symbols: Dims, gaps: bool) -> SizeAndStride | None:
    """None where the values are not evenly spaced, or XLA cannot tell (`ExtractSizeAndStride`). With `gaps`,
    partly sliced rows are spaced evenly by tiles of one row or one column (`VerifyReshapeContiguity`,
    `xla/codegen/tiling/experimental/tile_propagation.cc`)."""
    kind = expr.kind
    if kind == CONSTANT:
        return SizeAndStride(ONE, ZERO)
    if kind == VARIABLE:
        if expr.value < len(dims):
            return SizeAndStride(expr, ONE)
        lo, hi = symbols[expr.value - len(dims)]
        return SizeAndStride(constant(hi + 1), ONE) if lo == 0 else None
    if kind == MUL:
        inner = size_and_stride(expr.lhs, dims, symbols, gaps)
        # XLA forgets the condition of the factor.
        return inner and SizeAndStride(inner.size, mul(inner.stride, expr.rhs))
    if kind == ADD:
        parts = [size_and_stride(e, dims, symbols, gaps) for e in summands(expr)]
        present = [p for p in parts if p is not None]
        return _sum_size_and_stride(present, dims, gaps) if len(present) == len(parts) else None
    if expr.rhs.kind != CONSTANT:
        return None
    if kind == FLOORDIV:
        return SizeAndStride(_ceil_div(expr.lhs, expr.rhs), ONE) if _is_dim(expr.lhs, dims) else None
    assert kind == MOD
    return _mod_size_and_stride(expr.lhs, expr.rhs, dims)


def _is_dim(expr: Expr, dims: Dims) -> bool:
    return expr.kind == VARIABLE and expr.value < len(dims)


def _ceil_div(a: Expr, b: Expr) -> Expr:
    return floordiv(add(a, add(b, -1)), b)


def _mod_size_and_stride(lhs: Expr, modulus: Expr, dims: Dims) -> SizeAndStride | None:
    """Size and stride of a remainder or quotient: the tile divides the modulus or is a multiple."""
    if _is_dim(lhs, dims):
        tile = lhs
    elif lhs.kind == FLOORDIV and _is_dim(lhs.lhs, dims) and lhs.rhs.kind == CONSTANT:
        tile = _ceil_div(lhs.lhs, lhs.rhs)
    else:
        return None
    size = subtract(tile, mul(floordiv(add(tile, -1), modulus), modulus))
    condition = either(one(mod(modulus, tile), (0, 0)), one(mod(tile, modulus), (0, 0)))
    return SizeAndStride(size, ONE, condition)


def _extent(size: Expr, dims: Dims) -> int | None:
    """The largest value of a size; None for a dimension that does not start at 0."""
    if size.kind == CONSTANT:
        return size.value
    lo, hi = dims[size.value]
    return hi + 1 if lo == 0 else None


def _sum_size_and_stride(parts: list[SizeAndStride], dims: Dims, gaps: bool) -> SizeAndStride | None:
    condition = ALWAYS
    size = ONE
    for part in parts:
        condition = both(condition, part.condition)
        size = mul(size, part.size)
        if part.stride.kind != CONSTANT or not (part.size.kind == CONSTANT or _is_dim(part.size, dims)):
            return None
    parts = sorted(parts, key=lambda p: -abs(p.stride.value))
    extents = list[int]()
    whole = []
    for i, part in enumerate(parts):
        extent = _extent(part.size, dims)
        if extent is None:
            return None
        step = abs(parts[i - 1].stride.value) if i else 0
        whole.append(i == 0 or extent * abs(part.stride.value) == step)
        # Each part has to fill the step of the one before it, or to stay within it.
        if not whole[-1] and not (gaps and (extent - 1) * abs(part.stride.value) < step):
            return None
        extents.append(extent)
    stride = ZERO
    for part, extent in zip(parts, extents, strict=True):
        stride = _unless_one(part.size, extent, part.stride, stride)
    sizes = [p.size for p in parts]
    return SizeAndStride(size, stride, both(condition, _contiguous(sizes, extents, whole)))


def _unless_one(size: Expr, extent: int, otherwise: Expr, if_one: Expr) -> Expr:
    """`if_one` where size is 1, else `otherwise`; size is between 1 and extent (`IfNeqOne`)."""
    is_one = floordiv(subtract(constant(extent + 1), size), extent)
    return add(mul(is_one, if_one), mul(add(negate(is_one), 1), otherwise))


def _contiguous(sizes: list[Expr], extents: list[int], whole: list[bool]) -> Condition:
    """The condition, from the largest stride: ones, any size, full (only a `whole` one) dimensions, ones."""
    condition = NEVER
    count = len(sizes)
    for partial in range(count):
        for full in range(count - partial):
            if not all(whole[partial + 1 : partial + full + 1]):
                break
            conjunction = ALWAYS
            for i, (size, extent) in enumerate(zip(sizes, extents, strict=True)):
                if i != partial:
                    value = extent if partial < i <= partial + full else 1
                    conjunction = both(conjunction, one(size, (value, value)))
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


_TILES: dict[tuple[IndexingMap, bool], SymbolicTile | None] = {}


def symbolic_tile(m: IndexingMap, gaps: bool = False) -> SymbolicTile | None:
    """The tile of a map, None where it has none (`SymbolicTile::FromIndexingMap`)."""
    try:
        return _TILES[m, gaps]
    except KeyError:
        tile = _TILES[m, gaps] = _derive(simplify_keeping_points(m), gaps)
        return tile


def _derive(m: IndexingMap, gaps: bool) -> SymbolicTile | None:
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
