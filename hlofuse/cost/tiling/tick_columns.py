"""The arithmetic of `hlofuse.cost.gpu.ticks` and the basic times of a kernel, for many kernels at once.
Mirrors `GpuPerformanceModelBase` in `xla/service/gpu/model/gpu_performance_model_base.cc`. Single precision
is that of numpy; times are int64 ticks."""

import json
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.ticks import TICKS_PER_SECOND
from hlofuse.cost.gpu.timing import flops_per_ns_and_fpu
from hlofuse.releases import Release
from .analysis import TiledNode
from .dot_cost import Dot, DotTime, dot_of, dot_time
from .fusion_view import FusionView
from .tilings import Column, Columns, Floats
from .triton_support import DotDimensions

Ticks: TypeAlias = NDArray[np.int64]
Number: TypeAlias = "NDArray[np.int64] | Floats | NDArray[np.float32] | np.float32 | int | float"
_F = np.float32


def half_away(value: Floats) -> Ticks:
    """The nearest integers of non-negative values, halves up."""
    whole = np.trunc(value)
    result: Ticks = whole.astype(np.int64) + (value - whole >= 0.5)
    return result


def seconds(value: Number) -> Ticks:
    """`absl::Seconds` of non-negative values."""
    v = np.asarray(value, dtype=np.float64)
    whole = np.trunc(v)
    result: Ticks = whole.astype(np.int64) * TICKS_PER_SECOND + half_away((v - whole) * TICKS_PER_SECOND)
    return result


def _round_ticks(ticks: Floats) -> Ticks:
    """Fractional ticks, rounded as in absl, through seconds."""
    rest, whole = np.modf(ticks / TICKS_PER_SECOND)
    result: Ticks = whole.astype(np.int64) * TICKS_PER_SECOND + half_away(rest * TICKS_PER_SECOND)
    return result


def nanoseconds(value: Number) -> Ticks:
    """`absl::Nanoseconds` of non-negative values."""
    return _round_ticks(4.0 * np.asarray(value, dtype=np.float64))


class KernelTimes:
    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self.device = device
        self.release = release
        self._bandwidth = _F(device.memory_bandwidth)
        self._flops_per_core = flops_per_ns_and_fpu(device, release)
        self._per_block = _F(device.clock_rate_ghz) * _F(1e9) * _F(device.bytes_per_clock_and_core)
        self._l1_size = device.l1_cache_size_per_core * device.core_count

    def compute(self, flops: Ticks, blocks: Ticks, threads: Ticks) -> Ticks:
        """`ComputeTime`."""
        d = self.device
        units: Ticks = np.minimum(blocks, d.core_count) * np.minimum(threads, d.fpus_per_core)
        rate: Ticks = (self._flops_per_core * units).astype(np.int64)
        quotient = np.true_divide(flops.astype(_F), rate.astype(_F))
        return nanoseconds(quotient)

    def combine(self, compute: Ticks, memory: Ticks) -> Ticks:
        """Run time from compute and memory time (`CombineComputeAndMemoryAccessTime`)."""
        shorter = np.minimum(compute, memory).astype(np.float64)
        result: Ticks = compute + memory - _round_ticks(shorter * self.device.memory_compute_parallelism)
        return result

    def read(
        self,
        blocks: Number,
        size: Ticks | int,
        total: Ticks,
        rate: Floats,
    ) -> Ticks:
        """Ticks to read `total` bytes of `size` at `rate` of the bandwidth (`ReadTimeWithDRAMHeuristic`)."""
        d = self.device
        net = np.minimum(size, total)
        dram = (d.memory_bandwidth * rate).astype(_F)
        cached = self._bandwidth * _F(d.l2_cache_speedup)
        rest = np.where(
            net < d.l2_cache_size,
            np.where(net < self._l1_size, cached * _F(d.l1_cache_speedup), cached),
            (float(self._bandwidth) * rate).astype(_F),
        )
        most = np.asarray(blocks).astype(_F) * self._per_block
        first = seconds(net.astype(_F) / np.minimum(dram, most))
        return first + seconds((total - net).astype(_F) / np.minimum(rest, most))

    def write(self, size: int, rate: Floats) -> Ticks:
        """Ticks to write a `size`-byte output at `rate` of the bandwidth."""
        return seconds(size / (rate * self.device.memory_bandwidth).astype(np.int64))


def dot_problem(view: FusionView, op: int) -> Dot | None:
    """The dot with that number; None if it is counted by its FLOP, like other operations."""
    if _has_transpose_below(view, op):
        return None
    kind = view.kinds[op]
    dims = cast("DotDimensions", kind.instruction_key)
    types = [o.element_type for o in view.instructions[op].operands[:2]]
    lhs, rhs = kind.operand_dims[:2]
    return dot_of(dims, lhs, rhs, (types[0], types[1], kind.shape.element_type))


def dot_tile_sizes(view: FusionView) -> dict[int, tuple[int, ...]]:
    """Contracting tile sizes from the backend configs of dots (`TilingFromAnnotatedFusion`)."""
    result = {}
    for op, kind in enumerate(view.kinds):
        if kind.opcode == "dot" and view.inside[op]:
            text = view.instructions[op].raw("backend_config") or "{}"
            try:
                result[op] = tuple(int(n) for n in json.loads(text).get("sizes", ()))
            except (ValueError, AttributeError):
                result[op] = ()
    return result


def _has_transpose_below(view: FusionView, op: int) -> bool:
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
) -> tuple[Ticks, Ticks]:
    """Compute time and whole time of one dot for each tiling (`GetDotEstimates` in
    `xla/service/gpu/model/gpu_indexing_performance_model.cc`)."""
    dot = dot_problem(view, node.op)
    count = len(warps)
    along = cast("DotDimensions", view.kinds[node.op].instruction_key)[2][0]
    exprs = [*node.tile.sizes, node.operands[0].tile.sizes[along]]
    columns = [np.broadcast_to(sizes.value(e), (count,)).tolist() for e in exprs]
    compute, total = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    cached = dict[tuple[int, ...], DotTime | None]()
    for i, (*tile, tile_k, w) in enumerate(zip(*columns, warps.tolist(), strict=True)):
        key = (*tile, tile_k, w)
        if key not in cached:
            cached[key] = dot_time(dot, tuple(tile), tile_k, w, stages, device) if dot else None
        if (found := cached[key]) is not None:
            compute[i], total[i] = found
    return compute, total
