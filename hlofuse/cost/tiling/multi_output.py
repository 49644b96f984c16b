"""Tiles of the outputs a fusion has besides its last one (`InitializeTiledRoots` and
`IsSafeForBufferSharing` in `xla/codegen/tiling/symbolic_tile_analysis.cc`).

Such an output is an operation on the way to the root. One of its tiles is written out, if the blocks
together write the array once, in the order in which blocks of its own would.
"""

from __future__ import annotations

import numpy as np

from hlofuse.cost.tiling.analysis import Analysis, TiledNode
from hlofuse.cost.tiling.expressions import ZERO, Expr, floordiv, mod, mul, substitute, variable
from hlofuse.cost.tiling.simplifier import Simplifier
from hlofuse.cost.tiling.tilings import Column, Columns, block_count

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
