"""The dots of a tiled fusion, costed for many tilings (`GetDotEstimates` in
`xla/service/gpu/model/gpu_indexing_performance_model.cc`)."""

from __future__ import annotations

import json
from typing import NamedTuple, cast

import numpy as np

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tiling.analysis import TiledNode
from hlofuse.cost.tiling.dot_cost import Dot, DotTime, dot_of, dot_time
from hlofuse.cost.tiling.dot_support import DotDimensions
from hlofuse.cost.tiling.fusion_view import FusionView
from hlofuse.cost.tiling.tick_columns import Ticks
from hlofuse.cost.tiling.tilings import Column, Columns


class DotTicks(NamedTuple):
    """Compute time and whole time of one dot for each tiling."""

    compute: Ticks
    total: Ticks


def dot_problem(view: FusionView, op: int) -> Dot | None:
    """The dot with that number; None if it is counted by its flops, like other operations."""
    if _has_transpose_below(view, op):
        return None
    kind = view.kinds[op]
    dims = cast("DotDimensions", kind.instruction_key)
    types = [o.shape.element_type for o in view.instructions[op].operands[:2]]
    lhs, rhs = kind.operand_dims[:2]
    return dot_of(dims, lhs, rhs, (types[0], types[1], kind.shape.element_type))


def dot_tile_sizes(view: FusionView) -> dict[int, tuple[int, ...]]:
    """Tile sizes of summed dimensions as the backend configs of dots say (`TilingFromAnnotatedFusion`)."""
    result: dict[int, tuple[int, ...]] = {}
    for op, kind in enumerate(view.kinds):
        if kind.opcode == "dot" and view.inside[op]:
            text = view.instructions[op].attributes.raw("backend_config") or "{}"
            try:
                result[op] = tuple(int(n) for n in json.loads(text).get("sizes", ()))
            except (ValueError, AttributeError):
                result[op] = ()
    return result


def _has_transpose_below(view: FusionView, op: int) -> bool:
    """True if a transpose depends on the dot."""
    reached = {op}
    changed = True
    while changed:
        changed = False
        for user, operands in enumerate(view.operands):
            if user not in reached and not reached.isdisjoint(operands):
                if view.kinds[user].opcode == "transpose":
                    return True
                reached.add(user)
                changed = True
    return False


def dot_times(
    view: FusionView,
    node: TiledNode,
    sizes: Columns,
    warps: Column,
    stages: int,
    device: DeviceDescription,
) -> DotTicks:
    """Times of the dot a node stands for."""
    dot = dot_problem(view, node.op)
    count = len(warps)
    along = cast("DotDimensions", view.kinds[node.op].instruction_key)[2][0]
    exprs = [*node.tile.sizes, node.operands[0].tile.sizes[along]]
    columns = [np.broadcast_to(np.asarray(sizes.value(e)), (count,)).tolist() for e in exprs]
    compute, total = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    cached: dict[tuple[int, ...], DotTime | None] = {}
    for i, (*tile, tile_k, w) in enumerate(zip(*columns, warps.tolist(), strict=True)):
        key = (*tile, tile_k, w)
        if key not in cached:
            cached[key] = dot_time(dot, tuple(tile), tile_k, w, stages, device) if dot else None
        found = cached[key]
        if found is not None:
            compute[i], total[i] = found
    return DotTicks(compute, total)
