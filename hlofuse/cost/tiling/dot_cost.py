"""Run time of a dot inside a tiled fusion (`xla/service/gpu/model/gpu_dot_fusion_cost_model.cc`). All times
are ticks of 0.25 ns. As in XLA the table of bandwidths and two quotients are floats."""

from bisect import bisect_left
from typing import NamedTuple

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.ticks import ceil_of_ratio, fp32, nanoseconds, seconds
from hlofuse.ir.shape import BIT_WIDTH, Dims
from .triton_support import DotDimensions

_GIGABYTE = 1 << 30
_KILOBYTES = tuple(8192 << i for i in range(18))
# Share of the peak bandwidth that a transfer of 8 KiB, 16 KiB … 1 GiB reaches.
_BANDWIDTH_SHARES = tuple(
    fp32(float(share))
    for share in """
    0.00042359 0.00090385 0.00179577 0.00351100 0.00706376 0.01412455 0.02761073 0.05341375 0.10343583
    0.19072761 0.31917596 0.47249365 0.58906066 0.69897562 0.78541428 0.82530600 0.88562244 0.93248850
    """.split()
)
_L2_BYTES_PER_SECOND = 6.65 * 1e12
_L2_MEASURED_AT = 3352.32  # peak bandwidth in GB/s of the device on which XLA measured its table
_LOOP_OVERHEAD_SECONDS = 400 * 1e-9
_LOOP_LATENCY = nanoseconds(1300)


class Dot(NamedTuple):
    """Sizes (batch, rows, columns, summed) and element types of a dot (`DotProblemInfo`)."""

    b: int
    m: int
    n: int
    k: int
    lhs: str
    rhs: str
    output: str


class DotTime(NamedTuple):
    """Times of a dot that a fusion's estimate uses."""

    compute: int
    total: int


def dot_of(dims: DotDimensions, lhs: Dims, rhs: Dims, types: tuple[str, str, str]) -> Dot | None:
    """The dot; None for one that XLA's model does not cover (`IsSupported`)."""
    lhs_batch, rhs_batch, lhs_sum, rhs_sum = dims
    rows = [d for d in range(len(lhs)) if d not in lhs_batch and d not in lhs_sum]
    columns = [d for d in range(len(rhs)) if d not in rhs_batch and d not in rhs_sum]
    if len(rows) != 1 or len(columns) != 1 or len(lhs_sum) != 1:
        return None
    batch = 1
    for d in lhs_batch:
        batch *= lhs[d]
    return Dot(batch, lhs[rows[0]], rhs[columns[0]], lhs[lhs_sum[0]], *types)


def peak_matrix_ops(device: DeviceDescription, element_type: str) -> int:
    """Operations per nanosecond of all matrix units (`CalculatePeakMatrixOpsPerNs`)."""
    for name, clock, units, operations in device.matrix_units:
        if name == element_type:
            return int(fp32(fp32(clock * operations) * 2) * (device.core_count * units))
    return int(fp32(device.clock_rate_ghz * 2) * (device.core_count * device.fpus_per_core))


def _derate(device: DeviceDescription, rows: int) -> float:
    """The rate for tiles of few rows, without the fast instructions (`GetEffectiveFlopsPerNsForTileSize`)."""
    major = device.compute_capability[0]
    least, factor = {10: (128, 0.5), 9: (64, 0.63), 8: (32, 0.5)}.get(major, (0, 1.0))
    return factor if rows < least else 1.0


def _memory_bandwidth(device: DeviceDescription, size: int) -> float:
    """Bytes per second that a transfer of `size` bytes reaches (`GetEffectiveHbmBandwidth`)."""
    peak = device.memory_bandwidth / _GIGABYTE
    table = [fp32(share * peak) for share in _BANDWIDTH_SHARES]
    if size <= _KILOBYTES[0]:
        return fp32(table[0] * _GIGABYTE)
    if size >= _KILOBYTES[-1]:
        return fp32(table[-1] * _GIGABYTE)
    above = bisect_left(_KILOBYTES, size)
    below = above - 1
    low, high = table[below], table[above]
    step = fp32(fp32(size - _KILOBYTES[below]) / fp32(_KILOBYTES[above] - _KILOBYTES[below]))
    return fp32(fp32(low + fp32(step * fp32(high - low))) * _GIGABYTE)


def dot_time(
    dot: Dot,
    tile: Dims,
    tile_k: int,
    warps: int,
    stages: int,
    device: DeviceDescription,
) -> DotTime | None:
    """The dot with output tiles of the given sizes; None where XLA's model fails."""
    if len(tile) < 2 or tile_k <= 0:
        return None
    tile_b = 1
    for size in tile[:-2]:
        tile_b *= size
    tile_m, tile_n = tile[-2:]
    lhs_bits, rhs_bits = BIT_WIDTH[dot.lhs], BIT_WIDTH[dot.rhs]
    blocks = ceil_of_ratio(dot.b, tile_b) * ceil_of_ratio(dot.m, tile_m) * ceil_of_ratio(dot.n, tile_n)
    # As many blocks as fill the device a whole number of times.
    full_blocks = ceil_of_ratio(blocks, device.core_count) * device.core_count
    flops = 2 * tile_b * tile_m * tile_n * dot.k * full_blocks
    compute = nanoseconds(fp32(flops) / (peak_matrix_ops(device, dot.lhs) * _derate(device, tile_m)))

    read = ceil_of_ratio(dot.b * dot.m * dot.k * lhs_bits, 8) + ceil_of_ratio(
        dot.b * dot.k * dot.n * rhs_bits, 8
    )
    written = ceil_of_ratio(dot.b * dot.m * dot.n * BIT_WIDTH[dot.output], 8)
    bandwidth = _memory_bandwidth(device, read + written)
    read_time, write_time = seconds(fp32(fp32(read) / bandwidth)), seconds(fp32(fp32(written) / bandwidth))

    row_bytes, column_bytes = tile_m * tile_k * lhs_bits // 8, tile_n * tile_k * rhs_bits // 8
    resident = _blocks_per_core(device, (row_bytes + column_bytes) * stages, warps) * device.core_count
    waves = ceil_of_ratio(blocks, resident)
    steps = ceil_of_ratio(dot.k, tile_k)
    loop = waves * _loop_time(stages, steps, compute // waves, read_time // waves, write_time // waves)

    l2_bytes = blocks * (
        ceil_of_ratio(tile_b * tile_m * dot.k * lhs_bits, 8)
        + ceil_of_ratio(tile_b * tile_n * dot.k * rhs_bits, 8)
    )
    scale = device.memory_bandwidth / _GIGABYTE / _L2_MEASURED_AT
    l2_time = seconds(l2_bytes / (_L2_BYTES_PER_SECOND * scale) + steps * _LOOP_OVERHEAD_SECONDS)
    return DotTime(compute, max(loop, l2_time))


def _blocks_per_core(device: DeviceDescription, shared_memory: int, warps: int) -> int:
    """`CalculateSmOccupancy`."""
    by_threads = device.threads_per_core_limit // (warps * device.threads_per_warp)
    by_memory = (
        device.shared_memory_per_core // shared_memory if shared_memory > 0 else device.threads_per_core_limit
    )
    blocks = max(1, min(by_memory, by_threads))
    limit = device.max_blocks_per_multiprocessor
    return min(blocks, limit) if limit > 0 else blocks


def _loop_time(
    stages: int,
    steps: int,
    compute: int,
    read: int,
    write: int,
) -> int:
    """Time of one wave: loads precede the arithmetic by `stages` - 1 steps (`CalculatePipelinedLoopTime`)."""
    if stages <= 1 or steps <= 1:
        return read + write + compute + steps * _LOOP_LATENCY
    compute_step, raw_read_step = compute // steps, read // steps
    read_step = raw_read_step + _LOOP_LATENCY
    step = max(max(raw_read_step, compute_step), max(read_step, compute_step) // (stages - 1))
    prefetched = min(stages - 1, steps)
    return prefetched * read_step + (steps - prefetched) * step + prefetched * compute_step + write
