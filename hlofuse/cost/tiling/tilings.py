"""All tilings of a fusion (`GetFlatTilingsForInputSpace`), and the values expressions have for them.

Everything is computed for all tilings at once: a tiling parameter is a column of numbers, and an expression
of parameters becomes a column.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlofuse.cost.tiling.analysis import Analysis, TiledNode
from hlofuse.cost.tiling.constraints import ALWAYS, Condition
from hlofuse.cost.tiling.expressions import (
    ADD,
    CONSTANT,
    FLOORDIV,
    MUL,
    VARIABLE,
    ZERO,
    Expr,
    floordiv,
    mod,
    mul,
    substitute,
    variable,
)
from hlofuse.cost.tiling.simplifier import Simplifier

Column: TypeAlias = NDArray[np.int64]
Value: TypeAlias = "Column | int"
Mask: TypeAlias = NDArray[np.bool_]


class Columns:
    """Values of expressions of tiling parameters, each worked out once."""

    __slots__ = ("_masks", "_negative", "_padded", "_products", "_values", "parameters")

    def __init__(self, parameters: Sequence[Value]) -> None:
        self.parameters = parameters
        self._values: dict[Expr, Value] = {}
        self._padded: dict[Expr, Value] = {}
        self._products: dict[tuple[Expr, ...], Value] = {}
        self._negative: dict[Expr, bool] = {}
        self._masks: dict[object, Mask | bool] = {}

    def value(self, expr: Expr) -> Value:
        if expr.kind == VARIABLE:
            return self.parameters[expr.value]
        if expr.kind == CONSTANT:
            return expr.value
        found = self._values.get(expr)
        if found is None:
            a, b = self.value(expr.lhs), self.value(expr.rhs)
            if expr.kind == ADD:
                found = a + b
            elif expr.kind == MUL:
                found = a * b
            else:
                found = a // b if expr.kind == FLOORDIV else a % b
            self._values[expr] = found
        return found

    def padded(self, expr: Expr) -> Value:
        """The value rounded up to a power of two."""
        found = self._padded.get(expr)
        if found is None:
            found = self._padded[expr] = power_of_two_ceil(self.value(expr))
        return found

    def padded_product(self, exprs: tuple[Expr, ...]) -> Value:
        """Elements of a tile with these sizes, each rounded up to a power of two."""
        found = self._products.get(exprs)
        if found is None:
            found = 1
            for expr in exprs:
                found = found * self.padded(expr)
            self._products[exprs] = found
        return found

    def has_negative(self, expr: Expr) -> bool:
        """True if the value is negative for any tiling."""
        found = self._negative.get(expr)
        if found is None:
            found = self._negative[expr] = bool(np.any(np.less(self.value(expr), 0)))
        return found

    def padded_at_most(self, exprs: tuple[Expr, ...], most: float) -> Mask | bool:
        """Where a tile with these sizes has no more elements, rounded up; True if everywhere."""
        found = self._masks.get((exprs, most))
        if found is None:
            found = self._masks[exprs, most] = _plain(self.padded_product(exprs) <= most)
        return found

    def satisfied(self, condition: Condition) -> Mask | bool:
        """Where a condition holds; True if everywhere."""
        if condition == ALWAYS:
            return True
        found = self._masks.get(condition)
        if found is None:
            found = self._masks[condition] = _plain(self._satisfied(condition))
        return found

    def _satisfied(self, condition: Condition) -> Mask | bool:
        anywhere: Mask | bool = False
        for conjunction in condition:
            everywhere: Mask | bool = True
            for expr, (lo, hi) in conjunction:
                v = self.value(expr)
                everywhere = everywhere & ((v == lo) if lo == hi else ((v >= lo) & (v <= hi)))
            anywhere = anywhere | everywhere
        return anywhere


def _plain(mask: Mask | bool) -> Mask | bool:
    """One answer where it is the same for all: nothing has to be combined with that number by number."""
    return True if np.all(mask) else mask


def power_of_two_ceil(value: Value) -> Value:
    """`llvm::PowerOf2Ceil` of each number."""
    if isinstance(value, int):
        return 1 << (value - 1).bit_length() if value > 0 else 0
    result: Column = np.left_shift(np.int64(1), np.frexp((value - 1).astype(np.float64))[1], dtype=np.int64)
    return result


def all_tilings(sizes: Sequence[int]) -> list[Column]:
    """For each dimension 1, 2, 4 … and the whole of it, in all combinations; the last varies fastest."""
    choices = []
    for size in sizes:
        own = [1 << k for k in range((size - 1).bit_length())]
        choices.append(np.array([*own, size] if size > 1 else [size], dtype=np.int64))
    count = int(np.prod([len(c) for c in choices])) if choices else 1
    columns, repeat = [], count
    for choice in choices:
        repeat //= len(choice)
        columns.append(np.tile(np.repeat(choice, repeat), count // (repeat * len(choice))))
    return columns


def block_count(dims: Sequence[int], tiles: Sequence[Value]) -> Value:
    """Blocks in the grid: tiles of the output."""
    count: Value = 1
    for size, tile in zip(dims, tiles, strict=False):
        count = count * (-(-size // tile))
    return count


# Tiles of the outputs a fusion has besides its last one (`InitializeTiledRoots` and
# `IsSafeForBufferSharing` in `xla/codegen/tiling/symbolic_tile_analysis.cc`).
#
# Such an output is an operation on the way to the root. One of its tiles is written out, if the blocks
# together write the array once, in the order in which blocks of its own would.


NO_TILE = -1


def output_nodes(analysis: Analysis, values: Columns, blocks: Column) -> list[Column]:
    """For each output and tiling the position of the node whose tile is written; NO_TILE if none can be."""
    count = len(blocks)
    last = len(analysis.nodes) - 1
    result = []
    for root in analysis.view.roots:
        if root == analysis.nodes[-1].op:
            result.append(np.full(count, last, dtype=np.int64))
            continue
        chosen = np.full(count, NO_TILE, dtype=np.int64)
        for position, node in enumerate(analysis.nodes[:-1]):
            if node.op == root:
                chosen[_can_be_written(analysis, node, values, blocks)] = position
        result.append(chosen)
    return result


def _can_be_written(analysis: Analysis, node: TiledNode, values: Columns, blocks: Column) -> np.ndarray:
    dims = analysis.view.kinds[node.op].dims
    sizes = [np.broadcast_to(np.asarray(values.value(e)), blocks.shape) for e in node.tile.sizes]
    good = np.asarray(block_count(dims, sizes) == blocks)
    # A scalar has no tile sizes; its one parameter only says that there is one tiling.
    of_sizes = values.parameters[: len(analysis.sizes)]
    parameters = [np.broadcast_to(np.asarray(p), blocks.shape) for p in of_sizes]
    for i in map(int, np.flatnonzero(good)):
        tiles = [int(p[i]) for p in parameters]
        simplifier = Simplifier([(0, int(blocks[i]) - 1)])
        start = _starts(analysis.sizes, tiles)
        symbols: list[Expr] = [ZERO] * len(node.map.symbols)
        reached = [simplifier.simplify(substitute(e, [*start, *symbols])) for e in node.map.results]
        wanted = [simplifier.simplify(e) for e in _starts(dims, [int(s[i]) for s in sizes])]
        good[i] = all(a is b for a, b in zip(reached, wanted, strict=True))
    return good


def _starts(dims: list[int] | tuple[int, ...], tiles: list[int]) -> list[Expr]:
    """Where the tile of block number d0 starts, blocks counted from the last dimension up."""
    starts: list[Expr] = []
    step = 1
    for size, tile in zip(reversed(dims), reversed(tiles), strict=True):
        count = -(-size // tile)
        index = mod(floordiv(variable(0), step), count)
        starts.append(mul(index, tile) if count > 1 else ZERO)
        step *= count
    return starts[::-1]
