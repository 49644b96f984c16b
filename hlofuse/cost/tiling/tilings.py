"""All tilings of a fusion (`GetFlatTilingsForInputSpace`), and their values of expressions. All are computed
at once: a parameter is a column of numbers, and so is an expression of parameters."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hlofuse.cost.gpu.device import DeviceDescription
from .analysis import Analysis, TiledNode
from .constraints import ALWAYS, Condition
from .expressions import (
    ADD,
    CONSTANT,
    FLOORDIV,
    MUL,
    VARIABLE,
    ZERO,
    Expr,
    Exprs,
    floordiv,
    mod,
    mul,
    substitute,
    variable,
)
from .op_kinds import OpKind
from .simplifier import Simplifier
from .size_and_stride import SymbolicTile, symbolic_tile

Column: TypeAlias = NDArray[np.int64]
Value: TypeAlias = "Column | int"
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = "NDArray[np.bool_] | bool"  # The tilings for which something holds; True for all


class Columns(Struct, eq=False):
    """Cached values of expressions of tiling parameters."""

    parameters: Sequence[Value]
    _values: dict[Expr, Value] = {}
    _padded: dict[Expr, Value] = {}
    _products: dict[Exprs, Value] = {}
    _negative: dict[Expr, bool] = {}
    _masks: dict[object, Mask] = {}

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

    def padded_product(self, exprs: Exprs) -> Value:
        """Elements of a tile with these sizes, each rounded up to a power of two."""
        found = self._products.get(exprs)
        if found is None:
            found = 1
            for expr in exprs:
                found = found * self.padded(expr)
            self._products[exprs] = found
        return found

    def has_negative(self, expr: Expr) -> bool:
        found = self._negative.get(expr)
        if found is None:
            found = self._negative[expr] = bool(np.any(np.less(self.value(expr), 0)))
        return found

    def padded_at_most(self, exprs: Exprs, most: float) -> Mask:
        """Mask of tilings whose rounded-up tile has at most that many elements; True for all."""
        found = self._masks.get((exprs, most))
        if found is None:
            found = self._masks[exprs, most] = _plain(self.padded_product(exprs) <= most)
        return found

    def condition_mask(self, condition: Condition) -> Mask:
        if condition == ALWAYS:
            return True
        found = self._masks.get(condition)
        if found is None:
            found = self._masks[condition] = _plain(self._compute_mask(condition))
        return found

    def _compute_mask(self, condition: Condition) -> Mask:
        anywhere: Mask = False
        for conjunction in condition:
            everywhere: Mask = True
            for expr, (lo, hi) in conjunction:
                v = self.value(expr)
                everywhere = everywhere & ((v == lo) if lo == hi else ((v >= lo) & (v <= hi)))
            anywhere = anywhere | everywhere
        return anywhere


def _plain(mask: Mask) -> Mask:
    """A bool where the mask is the same for all, which saves combining arrays."""
    return True if np.all(mask) else mask


def power_of_two_ceil(value: Value) -> Value:
    """`llvm::PowerOf2Ceil` of each number."""
    if isinstance(value, int):
        return 1 << (value - 1).bit_length() if value > 0 else 0
    _, exponents = np.frexp((value - 1).astype(np.float64))
    result: Column = np.left_shift(np.int64(1), exponents, dtype=np.int64)
    return result


def all_tilings(sizes: Sequence[int]) -> list[Column]:
    """All combinations of 1, 2, 4 … and the whole of each dimension; the last varies fastest."""
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
    count: Value = 1
    for size, tile in zip(dims, tiles, strict=False):
        count = count * (-(-size // tile))
    return count


# Tiles of the outputs before the last one (`InitializeTiledRoots` and
# `IsSafeForBufferSharing` in `xla/codegen/tiling/symbolic_tile_analysis.cc`).
#
# Such an output is an operation on the way to the root. One of its tiles is written out, if the blocks
# together write the array once, in the order in which blocks of its own would.


NO_TILE = -1


def output_nodes(analysis: Analysis, values: Columns, blocks: Column) -> list[Column]:
    """For each output and tiling the position of the written node; NO_TILE if there is none."""
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


def _can_be_written(
    analysis: Analysis,
    node: TiledNode,
    values: Columns,
    blocks: Column,
) -> np.ndarray:
    dims = analysis.view.kinds[node.op].dims
    sizes = [np.broadcast_to(values.value(e), blocks.shape) for e in node.tile.sizes]
    good = np.asarray(block_count(dims, sizes) == blocks)
    # A scalar has no tile sizes; its one parameter only says that there is one tiling.
    of_sizes = values.parameters[: len(analysis.sizes)]
    parameters = [np.broadcast_to(p, blocks.shape) for p in of_sizes]
    for i in map(int, np.flatnonzero(good)):
        tiles = [int(p[i]) for p in parameters]
        simplifier = Simplifier([(0, int(blocks[i]) - 1)])
        start = _starts(analysis.sizes, tiles)
        symbols = [ZERO] * len(node.map.symbols)
        reached = [simplifier.simplify(substitute(e, [*start, *symbols])) for e in node.map.results]
        wanted = [simplifier.simplify(e) for e in _starts(dims, [int(s[i]) for s in sizes])]
        good[i] = all(a is b for a, b in zip(reached, wanted, strict=True))
    return good


def _starts(dims: Sequence[int], tiles: Sequence[int]) -> list[Expr]:
    """The start of the tile of block number d0, blocks counted from the last dimension up."""
    starts = []
    step = 1
    for size, tile in zip(reversed(dims), reversed(tiles), strict=True):
        count = -(-size // tile)
        index = mod(floordiv(variable(0), step), count)
        starts.append(mul(index, tile) if count > 1 else ZERO)
        step *= count
    return starts[::-1]


class TilingSet:
    """A column for each tiling parameter, with caches for growing fusions."""

    def __init__(
        self, extents: Sequence[int], columns: Sequence[Column], transaction: int, pads: bool = False
    ) -> None:
        """`transaction` is bytes per memory transaction; with `pads`, tiles read up to a power of two."""
        self._extents = tuple(extents)
        self._transaction = transaction
        self.count = len(columns[0])
        self.sizes = Columns(columns)
        self._pads = pads
        self._extent = self.sizes.padded if pads else self.sizes.value
        self._strides = {self._extents: self.sizes}
        self._accesses = dict[tuple[OpKind, SymbolicTile], tuple[Value, Floats]]()
        self._blocks = dict[tuple[tuple[int, ...], int], Column]()
        self._parts = dict[bytes, TilingSet]()

    @property
    def columns(self) -> Sequence[Value]:
        return self.sizes.parameters

    def blocks(self, dims: tuple[int, ...], first: int = 0) -> Column:
        """Blocks in the grid of an output whose first dimension has parameter `first`."""
        cached = self._blocks.get((dims, first))
        if cached is None:
            blocks = block_count(dims, self.columns[first:])
            cached = self._blocks[dims, first] = np.broadcast_to(blocks, (self.count,))
        return cached

    def where(self, mask: Mask) -> "TilingSet":
        if mask is True:
            return self
        mask = np.broadcast_to(mask, (self.count,))
        if mask.all():
            return self
        key = mask.tobytes()
        part = self._parts.get(key)
        if part is None:
            columns = [np.asarray(c)[mask] for c in self.columns]
            part = self._parts[key] = TilingSet(self._extents, columns, self._transaction, self._pads)
        return part

    def strides(self, tile: SymbolicTile) -> Columns:
        """Values of a tile's strides, exact only up to the tile's own extents."""
        limits = tile.limits
        found = self._strides.get(limits)
        if found is None:
            clamped = [np.minimum(c, n) for c, n in zip(self.columns, limits, strict=False)]
            found = self._strides[limits] = Columns(clamped)
        return found

    def access(self, kind: OpKind, tile: SymbolicTile) -> tuple[Value, Floats]:
        """Bytes of one tile of an array, and the attained share of the bandwidth."""
        cached = self._accesses.get((kind, tile))
        if cached is None:
            size: Value = kind.element_bytes
            for expr, most in zip(tile.sizes, kind.dims, strict=True):
                size = size * np.minimum(self._extent(expr), most)
            share = self._bandwidth_share(kind, tile)
            cached = self._accesses[kind, tile] = size, share
        return cached

    def _bandwidth_share(self, kind: OpKind, tile: SymbolicTile) -> Floats:
        """`BandwidthUtilizationRateHeuristicForTiledMemoryAccess`."""
        strides = self.strides(tile)
        contiguous: Value = 1
        reached: Mask = True
        for d in kind.minor_to_major:
            reached = reached & (strides.value(tile.strides[d]) == 1)
            if reached is False or reached is np.False_:
                break
            extent = self._extent(tile.sizes[d])
            contiguous = contiguous * np.where(reached, np.minimum(extent, kind.dims[d]), 1)
            reached = reached & (extent >= kind.dims[d])
        size = np.asarray(contiguous) * kind.element_bytes
        transaction = self._transaction
        rate: Floats = size / (transaction * -(-size // transaction))
        return rate


def all_of(extents: Sequence[int], transaction: int, pads: bool = False) -> TilingSet:
    """All tilings that XLA tries for these extents."""
    return TilingSet(extents, all_tilings(extents) or [np.ones(1, dtype=np.int64)], transaction, pads)


# Which tilings of a fusion Triton's emitter takes.
#
# Mirrors `triton_emitter_constraints.cc` and `xtile/codegen/tiled_emitter_constraints.cc`.


MAX_TENSOR_ELEMENTS = 1048576
MAX_DOT_SIDE = 256


def valid_tilings(analysis: Analysis, device: DeviceDescription, tilings: TilingSet) -> TilingSet:
    view = analysis.view
    tilings = tilings.where(tilings.blocks(view.kinds[0].dims) < device.block_dim_limit_x)
    mask: Mask = True
    for sizes in dict.fromkeys(node.tile.sizes for node in analysis.nodes):
        mask = mask & tilings.sizes.padded_at_most(sizes, MAX_TENSOR_ELEMENTS)
    tilings = tilings.where(mask)
    values = tilings.sizes
    mask = True
    for condition in analysis.conditions:
        mask = mask & values.condition_mask(condition)
    for node in analysis.nodes:
        if node.op in view.roots:
            mask = mask & _root_sizes(node, view.kinds[node.op].dims, values)
        if view.inside[node.op]:
            mask = mask & _emitter_conditions(analysis, node, values)
    return tilings.where(mask)


def _root_sizes(node: TiledNode, dims: Sequence[int], values: Columns) -> Mask:
    """Mask: a tile of an output is a power of two or the whole dimension."""
    mask = True
    for expr, size in zip(node.tile.sizes, dims, strict=True):
        tile = values.value(expr)
        mask = mask & (((tile & (tile - 1)) == 0) | (tile == size))
    return mask


def _emitter_conditions(analysis: Analysis, node: TiledNode, values: Columns) -> Mask:
    """Mask: conditions on sizes rounded up to powers of two (`DeriveCustomConstraints`)."""
    kind = analysis.view.kinds[node.op]
    if kind.opcode in ("reshape", "bitcast"):
        own = kind.maps[0]
        tile = symbolic_tile(own) if own is not None else None
        if tile is None or tile.condition == ALWAYS:
            return True
        return Columns([values.padded(e) for e in node.tile.sizes]).condition_mask(tile.condition)
    if kind.opcode == "concatenate":
        along = kind.instruction_key[0]
        assert isinstance(along, int)
        if node.tile.offsets[along].value != 0:
            return False
        size = values.padded(node.tile.sizes[along])
        mask: Mask = True
        for dims in kind.operand_dims[:-1]:
            mask = mask & (dims[along] % size == 0)
        stride = Columns([power_of_two_ceil(p) for p in values.parameters]).value(node.tile.strides[along])
        return mask & (stride == 1)
    if kind.opcode == "dot":
        mask = True
        padded = Columns([power_of_two_ceil(p) for p in values.parameters])
        for operand in node.operands:
            for expr in operand.tile.sizes:
                side = padded.value(expr)
                mask = mask & ((side >= 1) & (side <= MAX_DOT_SIDE))
        return mask
    return True
