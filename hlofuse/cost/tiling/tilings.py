"""All tilings of a fusion, and which of them Triton's emitter takes.

Enumeration mirrors `GetFlatTilingsForInputSpace`, the checks `triton_emitter_constraints.cc` and
`xtile/codegen/tiled_emitter_constraints.cc`. Everything is computed for all tilings at once:
a tiling parameter is a column of numbers, and an expression of parameters becomes a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tiling.analysis import Analysis, TiledNode
from hlofuse.cost.tiling.constraints import ALWAYS, Condition
from hlofuse.cost.tiling.expressions import ADD, CONSTANT, FLOORDIV, MUL, VARIABLE, Expr
from hlofuse.cost.tiling.symbolic_tile import symbolic_tile

Column: TypeAlias = NDArray[np.int64]
Value: TypeAlias = "Column | int"
Mask: TypeAlias = NDArray[np.bool_]

MAX_TENSOR_ELEMENTS = 1048576
"""Triton takes no tensor with more elements."""
MAX_DOT_SIDE = 256


class Columns:
    """Values of expressions of tiling parameters, each worked out once."""

    __slots__ = ("_padded", "_values", "parameters")

    def __init__(self, parameters: Sequence[Value]) -> None:
        self.parameters = parameters
        self._values: dict[Expr, Value] = {}
        self._padded: dict[Expr, Value] = {}

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

    def padded_product(self, exprs: Sequence[Expr]) -> Value:
        """Elements of a tile with these sizes, each rounded up to a power of two."""
        product: Value = 1
        for expr in exprs:
            product = product * self.padded(expr)
        return product

    def satisfied(self, condition: Condition) -> Mask | bool:
        """Where a condition holds."""
        if condition == ALWAYS:
            return True
        anywhere: Mask | bool = False
        for conjunction in condition:
            everywhere: Mask | bool = True
            for expr, (lo, hi) in conjunction:
                v = self.value(expr)
                everywhere = everywhere & ((v == lo) if lo == hi else ((v >= lo) & (v <= hi)))
            anywhere = anywhere | everywhere
        return anywhere


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


def valid_tilings(analysis: Analysis, device: DeviceDescription) -> list[Column]:
    """The tilings the emitter takes, a column for each parameter, in XLA's order."""
    columns = all_tilings(analysis.sizes)
    view = analysis.view
    if not columns:
        columns = [np.ones(1, dtype=np.int64)]
    blocks = block_count(view.kinds[0].dims, columns)
    columns = _keep(columns, blocks < device.block_dim_limit_x)
    values = Columns(columns)
    mask: Mask | bool = True
    for sizes in dict.fromkeys(node.tile.sizes for node in analysis.nodes):
        mask = mask & (values.padded_product(sizes) <= MAX_TENSOR_ELEMENTS)
    if not isinstance(mask, bool):
        columns = _keep(columns, mask)
        values = Columns(columns)
    mask = True
    for condition in analysis.conditions:
        mask = mask & values.satisfied(condition)
    for node in analysis.nodes:
        if node.op in view.roots:
            mask = mask & _root_sizes(node, view.kinds[node.op].dims, values)
        if view.inside[node.op]:
            mask = mask & _emitter_conditions(analysis, node, values)
    return _keep(columns, mask)


def _keep(columns: list[Column], mask: Mask | bool) -> list[Column]:
    if isinstance(mask, bool):
        return columns if mask else [c[:0] for c in columns]
    return columns if mask.all() else [c[mask] for c in columns]


def _root_sizes(node: TiledNode, dims: Sequence[int], values: Columns) -> Mask | bool:
    """A tile of an output is a power of two or the whole dimension."""
    mask: Mask | bool = True
    for expr, size in zip(node.tile.sizes, dims, strict=True):
        tile = values.value(expr)
        mask = mask & (((tile & (tile - 1)) == 0) | (tile == size))
    return mask


def _emitter_conditions(analysis: Analysis, node: TiledNode, values: Columns) -> Mask | bool:
    """What has to hold once sizes are rounded up to powers of two (`DeriveCustomConstraints`)."""
    kind = analysis.view.kinds[node.op]
    if kind.opcode in ("reshape", "bitcast"):
        own = kind.maps[0]
        tile = symbolic_tile(own) if own is not None else None
        if tile is None or tile.condition == ALWAYS:
            return True
        return Columns([values.padded(e) for e in node.tile.sizes]).satisfied(tile.condition)
    if kind.opcode == "concatenate":
        along = kind.instruction_key[0]
        assert isinstance(along, int)
        if node.tile.offsets[along].value != 0:
            return False
        size = values.padded(node.tile.sizes[along])
        mask: Mask | bool = True
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
