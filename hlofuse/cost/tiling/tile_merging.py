"""Nodes of an analysis with equal tiles, by tiling.

XLA computes a tile once if operation, sizes, strides and operands agree (`OrderedUniquePtrValueHashSet` in
`symbolic_tile_analysis.cc`), and for operations without operands also where the tile starts, if that can
differ.
"""

from typing import TypeAlias

import numpy as np

from hlofuse.cost.tiling.analysis import TiledNode
from hlofuse.cost.tiling.expressions import (
    ADD,
    CONSTANT,
    MUL,
    VARIABLE,
    ZERO,
    Expr,
    mul,
    substitute,
    variable,
    variables_of,
)
from hlofuse.cost.tiling.fusion_view import FusionView
from hlofuse.cost.tiling.simplifier import Interval, Simplifier
from hlofuse.cost.tiling.tilings import Columns, Mask, Value
from hlofuse.ir.grouping import grouped

Same: TypeAlias = "Mask | bool"


class TileMerger:
    """Finds, for every node and tiling, the first node with the same tile."""

    def __init__(
        self,
        view: FusionView,
        nodes: list[TiledNode],
        sizes: list[int],
        values: Columns,
        count: int,
        shares_regions: bool = False,
    ) -> None:
        self.view = view
        self._shares_regions = shares_regions
        self.values = values
        self.count = count
        self.tiles_per_dimension = [-(-n // t) for n, t in zip(sizes, values.parameters, strict=False)]
        self.by_offset = self._compared_by_offset(nodes)
        self._numbers: dict[TiledNode, Value] = {}

    def _compared_by_offset(self, nodes: list[TiledNode]) -> dict[int, Same]:
        """The tilings whose offsets are compared, for operations without operands that occur
        twice with one size."""
        groups = grouped((node.op, node) for node in nodes if not node.operands)
        result: dict[int, Same] = {}
        for op, group in groups.items():
            needed: Same = False
            for i, b in enumerate(group):
                for a in group[:i]:
                    needed = needed | self._same_sizes(a, b)
            if needed is not False:
                result[op] = needed
        if len(self.view.roots) > 1:
            result.update((root, True) for root in self.view.roots)
        return result

    def _same_sizes(self, a: TiledNode, b: TiledNode) -> Same:
        return self._same(a.tile.sizes, b.tile.sizes, self.values, self.values)

    def _same(
        self,
        a: tuple[Expr, ...],
        b: tuple[Expr, ...],
        of_a: Columns,
        of_b: Columns,
    ) -> Same:
        same: Same = True
        for x, y in zip(a, b, strict=True):
            if x is not y or of_a is not of_b:
                same = same & (of_a.value(x) == of_b.value(y))
        return same

    def distinct(
        self, level: list[TiledNode], strides: dict[TiledNode, Columns]
    ) -> list[tuple[TiledNode, Same]]:
        """Nodes of one level with the tilings for which their tile is new."""
        numbers = self._numbers
        earlier: dict[int, list[TiledNode]] = {}
        result: list[tuple[TiledNode, Same]] = []
        for node in level:
            number: Value = len(numbers)
            new: Same = True
            for other in earlier.get(node.op, ()):
                same = self._equal(other, node, strides) & new
                if same is False:
                    continue
                new = new & ~same if not isinstance(same, bool) else new and not same
                number = numbers[other] if same is True else np.where(same, numbers[other], number)
                if isinstance(new, np.ndarray) and not new.any():
                    new = False
                    break
            numbers[node] = number
            earlier.setdefault(node.op, []).append(node)
            result.append((node, new))
        return result

    def _equal(self, a: TiledNode, b: TiledNode, strides: dict[TiledNode, Columns]) -> Same:
        has_regions = bool(a.regions or b.regions)
        if has_regions and not self._shares_regions:
            return False
        same: Same = True
        for x, y in () if has_regions else zip(a.operands, b.operands, strict=True):
            if x is not y:
                same = same & (self._numbers[x] == self._numbers[y])
                if same is False:
                    return False
        same = same & self._same_sizes(a, b)
        same = same & self._same(a.tile.strides, b.tile.strides, strides[a], strides[b])
        compare = True if self.view.kinds[a.op].opcode == "iota" else self.by_offset.get(a.op, False)
        if compare is not False and same is not False:
            at_once = self._same_offsets(a, b, same)
            same = same & (at_once if compare is True else at_once | ~compare)
        if isinstance(same, np.ndarray) and not same.any():
            return False
        return bool(same) if isinstance(same, np.bool_) else same

    def _same_offsets(self, a: TiledNode, b: TiledNode, where: Same) -> Same:
        same: Same = True
        for x, y in zip(a.map.results, b.map.results, strict=True):
            x, y = _tile_start(x, len(a.map.dims)), _tile_start(y, len(b.map.dims))
            if x is y:
                continue
            first, second = _linear(x), _linear(y)
            if first is not None and second is not None:
                if first[0] != second[0]:
                    return False
                for d in first[1].keys() | second[1].keys():
                    if first[1].get(d, 0) != second[1].get(d, 0):
                        same = same & (self.tiles_per_dimension[d] == 1)
            else:
                same = same & self._compare_simplified(x, y, where)
        return same

    def _compare_simplified(self, x: Expr, y: Expr, where: Same) -> Mask:
        """The general case, by tiling: both as functions of the block's index, simplified."""
        wanted = np.broadcast_to(np.asarray(where), (self.count,))
        result = np.zeros(self.count, dtype=np.bool_)
        for i in map(int, np.flatnonzero(wanted)):
            values: list[Expr] = []
            bounds: list[Interval] = []
            for d, tile in enumerate(self.values.parameters):
                tiles = int(_item(self.tiles_per_dimension[d], i))
                values.append(mul(variable(d), int(_item(tile, i))) if tiles > 1 else ZERO)
                bounds.append((0, max(tiles, 1) - 1))
            simplifier = Simplifier(bounds)
            result[i] = simplifier.simplify(substitute(x, values)) is simplifier.simplify(
                substitute(y, values)
            )
        return result


def _item(value: Value, i: int) -> int:
    return value if isinstance(value, int) else int(value[i])


def _tile_start(expr: Expr, rank: int) -> Expr:
    """The expression with symbols at their first values."""
    symbols = max(variables_of(expr), default=-1) + 1 - rank
    return substitute(expr, [*map(variable, range(rank)), *[ZERO] * symbols]) if symbols > 0 else expr


def _linear(expr: Expr) -> tuple[int, dict[int, int]] | None:
    """Constant and factors of a linear expression."""
    if expr.kind == CONSTANT:
        return expr.value, {}
    if expr.kind == VARIABLE:
        return 0, {expr.value: 1}
    if expr.kind == MUL and expr.rhs.kind == CONSTANT:
        inner = _linear(expr.lhs)
        return inner and (inner[0] * expr.rhs.value, {d: f * expr.rhs.value for d, f in inner[1].items()})
    if expr.kind == ADD:
        first, second = _linear(expr.lhs), _linear(expr.rhs)
        if first is None or second is None:
            return None
        factors = dict(first[1])
        for d, f in second[1].items():
            factors[d] = factors.get(d, 0) + f
        return first[0] + second[0], factors
    return None
