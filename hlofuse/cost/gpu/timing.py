"""Compute, read and write times of a kernel (`xla/service/gpu/model/gpu_performance_model_base.cc`), and its
estimate from structure and launch (`gpu_performance_model.cc`). All results are cached `ticks`."""

from collections.abc import Iterable

from hlofuse.releases import Release
from .device import DeviceDescription
from .estimate import Estimate, Launch
from .shapes import ShapeFacts
from .summary import Summary, SummaryPair
from .ticks import EXACT, INFINITE, fp32, nanoseconds, scaled_sum, seconds, single_half_away, times


def flops_per_ns_and_fpu(device: DeviceDescription, release: Release) -> float:
    """FLOP of an FPU in a nanosecond (`CalculateEffectiveFlopsPerNs`)."""
    flops = fp32(fp32(device.clock_rate_ghz) * 2)
    return int(flops) if release.whole_flops_per_ns else flops


class Timing:
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
        self._computes = dict[tuple[int, int], int]()
        self._reads = dict[tuple[int, int, int, int], int]()
        self._writes = dict[int, int]()
        self._overlaps = dict[int, int]()

    def compute(self, flops: int, blocks: int, threads: int) -> int:
        """`ComputeTime`, for the FPUs that a launch occupies."""
        cores, fpus = self._cores, self._fpus
        units = (blocks if blocks < cores else cores) * (threads if threads < fpus else fpus)
        ticks = self._computes.get((flops, units))
        if ticks is None:
            rate = fp32(int(self._flops_per_ns_and_fpu * units))
            exact = flops if flops < EXACT else fp32(flops)
            ticks = self._computes[flops, units] = nanoseconds(fp32(exact / rate)) if rate else INFINITE
        return ticks

    def uncoalesced_rate(self, element_bytes: int) -> float:
        """The used part of a DRAM transaction in an uncoalesced read."""
        return element_bytes / self._device.dram_to_l2_transaction_bytes

    def read(
        self,
        size: int,
        total: int,
        element_bytes: int,
        blocks: int,
    ) -> int:
        """`ReadTimeWithDRAMHeuristic` of reading `total` bytes of a buffer of `size`. `element_bytes` is 0
        for coalesced reads; `blocks` at most `saturating_blocks`."""
        key = (size, total, element_bytes, blocks)
        ticks = self._reads.get(key)
        if ticks is None:
            rate = self.uncoalesced_rate(element_bytes) if element_bytes else 1.0
            ticks = self._reads[key] = self.read_at_rate(min(size, total), total, rate, blocks)
        return ticks

    def read_all(
        self,
        reads: Iterable[tuple[ShapeFacts, int]],
        coalesced: bool,
        blocks: int,
    ) -> int:
        """Ticks of reading so many bytes of each operand."""
        blocks = min(blocks, self.saturating_blocks)
        return sum(
            [self.read(o.size, total, 0 if coalesced else o.element_bytes, blocks) for o, total in reads]
        )

    def read_at_rate(
        self,
        net: int,
        total: int,
        rate: float,
        blocks: int,
    ) -> int:
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

    def combine(self, compute: int, memory: int) -> int:
        """Total of the two times, which overlap in part (`CombineComputeAndMemoryAccessTime`)."""
        shorter = compute if compute < memory else memory
        overlap = self._overlaps.get(shorter)
        if overlap is None:
            overlap = self._overlaps[shorter] = times(shorter, self._parallelism)
        return compute + memory - overlap


def time_of(timing: Timing, summary: Summary, launch: Launch, coalesced: bool) -> Estimate:
    """Time of a single instruction (`EstimateRunTimeForInstructionImpl`)."""
    reads = zip(summary.operands, summary.operand_bytes, strict=True)
    read = timing.read_all(reads, coalesced, launch.blocks)
    compute = timing.compute(summary.flops, launch.blocks, launch.threads)
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
    flops = int(scaled_sum(first.flops, _evaluations(pair), second.flops))
    outer, inner, each = pair_reads(pair)
    operands = [pair.consumer.operands[k] for k in outer] + [pair.producer.operands[k] for k in inner]
    read = timing.read_all(zip(operands, each, strict=True), coalesced, launch.blocks)
    bytes_read = sum(each)
    compute = timing.compute(flops, launch.blocks, launch.threads)
    write, written = second.write, second.bytes_written
    ticks = timing.combine(compute, read + write)
    return Estimate(ticks, flops, bytes_read, written, read, write, compute, launch, coalesced)


def _evaluations(pair: SummaryPair) -> float:
    total = 0.0
    for slot in pair.slots:
        total = fp32(total + pair.consumer.utilization[slot])
    return total


def in_step(pair: SummaryPair, launch: Launch) -> bool:
    """True unless the two are reductions in one kernel: neighbours are read together."""
    return not (pair.producer.is_reduction and pair.consumer.is_reduction and launch.kind == "reduction")


def pair_reads(pair: SummaryPair) -> tuple[list[int], list[int], list[int]]:
    """Slots of the consumer's operands, the producer's others, and the bytes read of all these."""
    a, b, slot, shared = pair.producer, pair.consumer, pair.slot, pair.shared
    share = b.utilization[slot]
    incoming = a.operand_bytes
    if share != 1.0:  # byte counts are single precision already
        incoming = [single_half_away(read * share) for read in incoming]
    first = b.first_slots or range(len(b.operands))
    outer = [k for k, source in enumerate(first) if source != slot]
    inner = list(range(len(a.operands)))
    read = [b.operand_bytes[k] for k in outer]
    if shared or a.first_slots or a.skipped:
        both = {found: k for k, found in reversed(list(enumerate(shared))) if found is not None}
        for place, k in enumerate(outer):
            if (source := both.get(first[k])) is not None:
                read[place] += incoming[source] - _read_together(pair, source, first[k], b.operands[k])
        left_out = {*a.skipped, *(k for k, found in enumerate(shared) if found is not None)}
        left_out.update(k for k, source in enumerate(a.first_slots) if source != k)
        inner = [k for k in inner if k not in left_out]
    return outer, inner, read + [incoming[k] for k in inner]


def _read_together(pair: SummaryPair, inner: int, outer: int, operand: ShapeFacts) -> int:
    """Bytes that both read in step, and so once (`GetCommonUtilization`)."""
    a, b = pair.producer, pair.consumer
    if not (a.elementwise or (a.is_fusion and a.common_with_root(inner) == 1.0)):
        return 0
    common = b.common_utilization(outer, pair.slot) if b.is_fusion else float(b.elementwise)
    return single_half_away(operand.size_fp32 * common)
