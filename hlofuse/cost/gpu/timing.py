"""Compute, read and write times of a kernel (`xla/service/gpu/model/gpu_performance_model_base.cc`).

All results are ticks (see `ticks`). Equal questions come again and again, so answers are kept.
"""

from collections.abc import Sequence

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.ticks import EXACT, INFINITE, fp32, nanoseconds, seconds, times
from hlofuse.releases import Release


def flops_per_ns_and_fpu(device: DeviceDescription, release: Release) -> float:
    """What an FPU does in a nanosecond (`CalculateEffectiveFlopsPerNs`)."""
    flops = fp32(fp32(device.clock_rate_ghz) * 2)
    return int(flops) if release.whole_flops_per_ns else flops


class Timing:
    """The clock of one device."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self._device = device
        self._cores, self._fpus = device.core_count, device.fpus_per_core
        self._parallelism = device.memory_compute_parallelism
        self._bandwidth = fp32(device.memory_bandwidth)
        self._l1_bytes = device.l1_cache_size_per_core * device.core_count
        clock = fp32(device.clock_rate_ghz)
        self._per_block = fp32(fp32(clock * 1e9) * device.bytes_per_clock_and_core)
        self._flops_per_ns_and_fpu = flops_per_ns_and_fpu(device, release)
        # With more blocks than this the kernel can ask for more than even the first cache gives.
        self.saturating_blocks = (
            int(self._bandwidth * device.l2_cache_speedup * device.l1_cache_speedup / self._per_block) + 2
        )
        self._computes: dict[tuple[int, int], int] = {}
        """By flops and FPUs."""
        self._reads: dict[tuple[int, int, int, int], int] = {}
        self._writes: dict[int, int] = {}
        self._overlaps: dict[int, int] = {}

    def compute(self, flops: int, blocks: int, threads: int) -> int:
        """`ComputeTime`, for the FPUs that a launch keeps busy."""
        cores, fpus = self._cores, self._fpus
        units = (blocks if blocks < cores else cores) * (threads if threads < fpus else fpus)
        ticks = self._computes.get((flops, units))
        return self._work_out_compute(flops, units) if ticks is None else ticks

    def _work_out_compute(self, flops: int, units: int) -> int:
        rate = fp32(int(self._flops_per_ns_and_fpu * units))
        ticks = nanoseconds(fp32((flops if flops < EXACT else fp32(flops)) / rate)) if rate else INFINITE
        self._computes[flops, units] = ticks
        return ticks

    def uncoalesced_rate(self, element_bytes: int) -> float:
        """The part of a DRAM transaction that is used when neighbours read apart."""
        return element_bytes / self._device.dram_to_l2_transaction_bytes

    def read(self, size: int, total: int, element_bytes: int, blocks: int) -> int:
        """`ReadTimeWithDRAMHeuristic` of reading `total` bytes of a buffer of `size`.

        `element_bytes` is 0 for coalesced reads; `blocks` at most `saturating_blocks`.
        """
        key = (size, total, element_bytes, blocks)
        ticks = self._reads.get(key)
        if ticks is None:
            rate = self.uncoalesced_rate(element_bytes) if element_bytes else 1.0
            ticks = self._reads[key] = self.read_at_rate(min(size, total), total, rate, blocks)
        return ticks

    def read_each(
        self, operands: Sequence[ShapeFacts], totals: Sequence[int], coalesced: bool, blocks: int
    ) -> list[int]:
        """The same of each of several operands."""
        cached_reads, ticks = self._reads, []
        for operand, total in zip(operands, totals, strict=True):
            element_bytes = 0 if coalesced else operand.element_bytes
            of_one = cached_reads.get((operand.size, total, element_bytes, blocks))
            ticks.append(self.read(operand.size, total, element_bytes, blocks) if of_one is None else of_one)
        return ticks

    def read_at_rate(self, net: int, total: int, rate: float, blocks: int) -> int:
        """The same, with the part of each DRAM transaction that is used given."""
        dram = fp32(self._device.memory_bandwidth * rate)
        rest = self.cache_rate(net)
        if net >= self._device.l2_cache_size:
            rest = fp32(rest * rate)
        most = fp32(fp32(blocks) * self._per_block)
        dram, rest = min(dram, most), min(rest, most)
        from_dram = min(net, total)
        ticks = seconds(fp32(fp32(from_dram) / dram)) if from_dram else 0
        return ticks + (seconds(fp32(fp32(total - from_dram) / rest)) if total != from_dram else 0)

    def cache_rate(self, net: int) -> float:
        """Bytes a second out of the fastest cache that holds `net` bytes, or out of memory."""
        if net >= self._device.l2_cache_size:
            return self._bandwidth
        rate = fp32(self._bandwidth * self._device.l2_cache_speedup)
        return fp32(rate * self._device.l1_cache_speedup) if net < self._l1_bytes else rate

    def write(self, written: int) -> int:
        """`WriteTime` of so many bytes."""
        ticks = self._writes.get(written)
        if ticks is None:
            ticks = self._writes[written] = seconds(fp32(fp32(written) / self._bandwidth))
        return ticks

    def total(self, flops: int, blocks: int, threads: int, memory: int) -> int:
        """What `combine` makes of `compute` and so many ticks of reading and writing."""
        cores, fpus = self._cores, self._fpus
        units = (blocks if blocks < cores else cores) * (threads if threads < fpus else fpus)
        compute = self._computes.get((flops, units))
        if compute is None:
            compute = self._work_out_compute(flops, units)
        shorter = compute if compute < memory else memory
        overlap = self._overlaps.get(shorter)
        return self.combine(compute, memory) if overlap is None else compute + memory - overlap

    def combine(self, compute: int, memory: int) -> int:
        """`CombineComputeAndMemoryAccessTime`: the two overlap, but not wholly."""
        shorter = compute if compute < memory else memory
        overlap = self._overlaps.get(shorter)
        if overlap is None:
            overlap = self._overlaps[shorter] = times(shorter, self._parallelism)
        return compute + memory - overlap
