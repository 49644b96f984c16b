"""The part of an array one block works on, as a function of the tiling parameters
(`xla/codegen/tiling/symbolic_tile.h`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.cost.tiling.constraints import ALWAYS, Condition, both, condition_text, simplify
from hlofuse.cost.tiling.expressions import Expr, add, constant
from hlofuse.cost.tiling.indexing_map import IndexingMap, at_zero, results_text, simplify_keeping_points
from hlofuse.cost.tiling.simplifier import Simplifier
from hlofuse.cost.tiling.size_and_stride import size_and_stride


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicTile:
    """Offset, size and stride in each dimension of the array; variable i is tiling parameter i.

    Strides are to be evaluated with parameters no larger than `limits`.
    """

    rank: int
    offsets: tuple[Expr, ...]
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    limits: tuple[int, ...]
    condition: Condition

    def to_text(self, separator: str = " ") -> str:
        """`SymbolicTile::ToString`."""
        parts = (
            f"offset_map: {results_text(self.offsets, self.rank)}",
            f"size_map: {results_text(self.sizes, self.rank)}",
            f"stride_map: {results_text(self.strides, self.rank)}",
        )
        text = f"Symbolic tile with{separator}{separator.join(parts)}"
        if self.condition != ALWAYS:
            names = [f"d{i}" for i in range(self.rank)]
            text += f"{separator}constraints: {condition_text(self.condition, names)}"
        return text


_TILES: dict[IndexingMap, SymbolicTile | None] = {}


def symbolic_tile(m: IndexingMap) -> SymbolicTile | None:
    """The tile behind a map, None where it has none (`SymbolicTile::FromIndexingMap`)."""
    try:
        return _TILES[m]
    except KeyError:
        tile = _TILES[m] = _derive(simplify_keeping_points(m))
        return tile


def _derive(m: IndexingMap) -> SymbolicTile | None:
    # A bound from above on a result itself only means padding; others are not understood.
    if any(lo != 0 or expr not in m.results for expr, (lo, _) in m.constraints):
        return None
    simplifier = Simplifier(m.bounds, dict(m.constraints), replace_points=False)
    offsets = at_zero(m)
    sizes: list[Expr] = []
    strides: list[Expr] = []
    condition = ALWAYS
    for expr, offset in zip(m.results, offsets, strict=True):
        part = size_and_stride(simplifier.simplify(add(expr, constant(-offset.value))), m.dims, m.symbols)
        if part is None:
            return None
        sizes.append(part.size)
        strides.append(part.stride)
        condition = both(condition, part.condition)
    limits = tuple(hi + 1 for _, hi in m.dims)
    return SymbolicTile(len(m.dims), offsets, tuple(sizes), tuple(strides), limits, simplify(condition))
