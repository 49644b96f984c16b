"""What is special about a dot inside a tiled fusion: it loops over tiles of the summed dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hlofuse.cost.tiling.expressions import VARIABLE, Expr, substitute, variable
from hlofuse.cost.tiling.indexing_map import IndexingMap, make_map

if TYPE_CHECKING:
    from hlofuse.cost.tiling.dot_support import DotDimensions
    from hlofuse.cost.tiling.op_kinds import OpKind


def dot_contraction(kind: OpKind) -> tuple[int, ...]:
    """Dimensions of the left operand that a dot sums over."""
    return cast("DotDimensions", kind.instruction_key)[2]


def has_small_contraction(kind: OpKind) -> bool:
    """A summed or free dimension of size 1 (`IsDotWithNonBatchPointDimension`)."""
    lhs_batch, rhs_batch, _, rhs_contracted = cast("DotDimensions", kind.instruction_key)
    lhs, rhs = kind.operand_dims
    return any(n == 1 for d, n in enumerate(lhs) if d not in lhs_batch) or any(
        n == 1 for d, n in enumerate(rhs) if d not in rhs_batch and d not in rhs_contracted
    )


def parameters_for_contraction(
    m: IndexingMap, key: tuple[object, ...], position: int, first_parameter: int
) -> IndexingMap:
    """The map with the dot's summed symbols made tiling parameters
    (`InsertTilingParameterForContractingDimensions`).

    `position` is the operand's, `first_parameter` the number of the dot's first parameter.
    """
    contracted = cast("DotDimensions", key)[2 + position % 2]
    rank = len(m.dims)
    values = [variable(i) for i in range(rank + len(m.symbols))]
    removed: set[int] = set()
    for i, dimension in enumerate(contracted):
        symbol = _symbol_of(m.results[dimension], rank)
        if symbol is not None:
            values[symbol] = variable(first_parameter + i)
            removed.add(symbol)
    remaining = [s for s in range(rank, rank + len(m.symbols)) if s not in removed]
    for number, symbol in enumerate(remaining):
        values[symbol] = variable(rank + number)
    return make_map(
        [substitute(e, values) for e in m.results],
        m.dims,
        [m.symbols[s - rank] for s in remaining],
        [(substitute(e, values), r) for e, r in m.constraints],
    )


def _symbol_of(expr: Expr, rank: int) -> int | None:
    if expr.kind == VARIABLE:
        return expr.value if expr.value >= rank else None
    return _symbol_of(expr.lhs, rank) if expr.kind < VARIABLE else None
