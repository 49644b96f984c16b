"""Compute, read and write times of a kernel (`xla/service/gpu/model/gpu_performance_model_base.cc`), and its
estimate from structure and launch (`gpu_performance_model.cc`).

All results are ticks (see `ticks`) and are cached.
"""

from collections.abc import Sequence

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.summary import Summary, SummaryPair
from hlofuse.cost.gpu.ticks import (
    EXACT,
    INFINITE,
    fp32,
    nanoseconds,
    scaled_sum,
    seconds,
    single_half_away,
    times,
)
from hlofuse.releases import Release


def flops_per_ns_and_fpu(device: DeviceDescription, release: Release) -> float:
    """FLOP of an FPU in a nanosecond (`CalculateEffectiveFlopsPerNs`)."""
    flops = fp32(fp32(device.clock_rate_ghz) * 2)
    return int(flops) if release.whole_flops_per_ns else flops


class Timing:
    """Times on one device."""

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
        self._reads: dict[tuple[int, int, int, int], int] = {}
        self._writes: dict[int, int] = {}
        self._overlaps: dict[int, int] = {}

    def compute(self, flops: int, blocks: int, threads: int) -> int:
        """`ComputeTime`, for the FPUs that a launch occupies."""
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
        """The used part of a DRAM transaction in an uncoalesced read."""
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
        cached_reads, ticks = self._reads, []
        for operand, total in zip(operands, totals, strict=True):
            element_bytes = 0 if coalesced else operand.element_bytes
            of_one = cached_reads.get((operand.size, total, element_bytes, blocks))
            ticks.append(self.read(operand.size, total, element_bytes, blocks) if of_one is None else of_one)
        return ticks

    def read_at_rate(self, net: int, total: int, rate: float, blocks: int) -> int:
        """`read` with the used part of each DRAM transaction given."""
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
        """Bytes per second of the fastest cache that holds `net` bytes, or of memory."""
        if net >= self._device.l2_cache_size:
            return self._bandwidth
        rate = fp32(self._bandwidth * self._device.l2_cache_speedup)
        return fp32(rate * self._device.l1_cache_speedup) if net < self._l1_bytes else rate

    def write(self, written: int) -> int:
        """Time to write so many bytes (`WriteTime`)."""
        ticks = self._writes.get(written)
        if ticks is None:
            ticks = self._writes[written] = seconds(fp32(fp32(written) / self._bandwidth))
        return ticks

    def total(self, flops: int, blocks: int, threads: int, memory: int) -> int:
        """`combine` of compute time and the given memory ticks."""
        cores, fpus = self._cores, self._fpus
        units = (blocks if blocks < cores else cores) * (threads if threads < fpus else fpus)
        compute = self._computes.get((flops, units))
        if compute is None:
            compute = self._work_out_compute(flops, units)
        shorter = compute if compute < memory else memory
        overlap = self._overlaps.get(shorter)
        return self.combine(compute, memory) if overlap is None else compute + memory - overlap

    def combine(self, compute: int, memory: int) -> int:
        """Total of the two times, which overlap in part (`CombineComputeAndMemoryAccessTime`)."""
        shorter = compute if compute < memory else memory
        overlap = self._overlaps.get(shorter)
        if overlap is None:
            overlap = self._overlaps[shorter] = times(shorter, self._parallelism)
        return compute + memory - overlap


def time_of(timing: Timing, summary: Summary, launch: Launch, coalesced: bool) -> Estimate:
    """Time of a single instruction (`EstimateRunTimeForInstructionImpl`)."""
    blocks, most = launch.blocks, timing.saturating_blocks
    read, _ = _read_operands(timing, summary, blocks if blocks < most else most, coalesced)
    compute = timing.compute(summary.flops, blocks, launch.threads)
    write = timing.write(summary.written)
    ticks = timing.combine(compute, read + write)
    written, bytes_read = summary.written, summary.total_read
    return Estimate(ticks, summary.flops, bytes_read, written, read, write, compute, launch, coalesced)


def time_of_pair(
    timing: Timing,
    pair: SummaryPair,
    first: Estimate,
    second: Estimate,
    launch: Launch,
    coalesced: bool,
) -> Estimate:
    """Time of the producer fused into the consumer, from their estimates (`EstimateRunTimeForFusionImpl`)."""
    flops, read, bytes_read = _work_of_pair(timing, pair, first, second, launch, coalesced)
    compute = timing.compute(flops, launch.blocks, launch.threads)
    write, written = second.write, second.bytes_written
    ticks = timing.combine(compute, read + write)
    return Estimate(ticks, flops, bytes_read, written, read, write, compute, launch, coalesced)


def in_step(pair: SummaryPair, launch: Launch) -> bool:
    """True unless the two are reductions in one kernel: neighbours are read together."""
    return not (pair.producer.is_reduction and pair.consumer.is_reduction and launch.kind == "reduction")


def ticks_of_pair(
    timing: Timing, pair: SummaryPair, first: Estimate, second: Estimate, launch: Launch
) -> int:
    """Ticks of the pair where nothing reads across the grain of memory; enough for most pairs."""
    a, b, slot = pair.producer, pair.consumer, pair.slot
    coalesced = not a.is_reduction or in_step(pair, launch)
    blocks, threads, most = launch.blocks, launch.threads, timing.saturating_blocks
    if b.utilization[slot] != 1.0 or pair.shared or a.first_slots or a.skipped or b.first_slots:
        flops, read, _ = _work_of_pair(timing, pair, first, second, launch, coalesced)
        return timing.total(flops, blocks, threads, read + second.write)
    # As nearly always: what the producer reads comes in place of what it wrote, and that is all.
    flops = first.flops + second.flops
    if flops >= EXACT:
        flops = int(scaled_sum(first.flops, 1.0, second.flops))
    key = (blocks if blocks < most else most, coalesced)
    read, each = b.reads.get(key) or _read_operands(timing, b, *key)
    ticks, _ = a.reads.get(key) or _read_operands(timing, a, *key)
    return timing.total(flops, blocks, threads, read - each[slot] + ticks + second.write)


def _work_of_pair(
    timing: Timing,
    pair: SummaryPair,
    first: Estimate,
    second: Estimate,
    launch: Launch,
    coalesced: bool,
) -> tuple[int, int, int]:
    """FLOP of both, and ticks and bytes of their reads."""
    a, b, slot = pair.producer, pair.consumer, pair.slot
    share = evaluated = b.utilization[slot]
    further: Sequence[int] = ()
    if b.first_slots:
        further = b.slots_like(slot)[1:]
        for other in further:
            evaluated = fp32(evaluated + b.utilization[other])
    flops = first.flops + second.flops
    if evaluated != 1.0 or flops >= EXACT:
        flops = int(scaled_sum(first.flops, evaluated, second.flops))

    blocks, most = launch.blocks, timing.saturating_blocks
    if blocks > most:
        blocks = most
    # Start from all the consumer reads; what the producer changes is replaced.
    key = (blocks, coalesced)
    read, each = b.reads.get(key) or _read_operands(timing, b, blocks, coalesced)
    read_by_b = b.operand_bytes
    read -= each[slot]
    bytes_read = b.total_read - read_by_b[slot]
    for other in further:
        read -= each[other]
        bytes_read -= read_by_b[other]
    shared, first_slots, skipped = pair.shared, a.first_slots, a.skipped
    time = timing.read
    uses = a.parameter_uses if a.is_fusion else ()
    may_share = (b.is_fusion or b.elementwise) and (a.elementwise or a.is_fusion)
    for k, operand in enumerate(a.operands):
        if first_slots and first_slots[k] != k:
            continue
        total = a.operand_bytes[k]
        both = shared[k] if shared else None
        if share != 1.0:  # byte counts are single precision already
            total = single_half_away(total * share)
        if both is None:
            if k not in skipped:
                read += time(operand.size, total, 0 if coalesced else operand.element_bytes, blocks)
                bytes_read += total
            continue
        total += read_by_b[both]
        if may_share and (a.elementwise or 0 in uses[k]):
            # Where both read the operand in step, it is read once (`GetCommonUtilization`).
            common = b.common_utilization(both, slot) if b.is_fusion else 1.0
            if common:
                size = operand.size_fp32
                total -= int(size) if common == 1.0 else single_half_away(size * common)
        if total == read_by_b[both]:
            continue
        ticks = time(operand.size, total, 0 if coalesced else operand.element_bytes, blocks)
        for other in b.slots_like(both):
            read += ticks - each[other]
            bytes_read += total - read_by_b[other]
    return flops, read, bytes_read


def _read_operands(timing: Timing, summary: Summary, blocks: int, coalesced: bool) -> tuple[int, list[int]]:
    """Ticks to read all operands and each; `blocks` at most `saturating_blocks`."""
    cached = summary.reads.get((blocks, coalesced))
    if cached is None:
        each = timing.read_each(summary.operands, summary.operand_bytes, coalesced, blocks)
        cached = summary.reads[blocks, coalesced] = (sum(each), each)
    return cached
