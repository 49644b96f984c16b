"""The estimate of a kernel from its structure and its launch (`gpu_performance_model.cc`)."""

from collections.abc import Sequence

from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.summary import Summary, SummaryPair
from hlofuse.cost.gpu.ticks import EXACT, fp32, scaled_sum, single_half_away
from hlofuse.cost.gpu.timing import Timing


def time_of(timing: Timing, summary: Summary, launch: Launch, coalesced: bool) -> Estimate:
    """An instruction on its own (`EstimateRunTimeForInstructionImpl`)."""
    blocks, most = launch.blocks, timing.saturating_blocks
    read, _ = _read_operands(timing, summary, blocks if blocks < most else most, coalesced)
    compute = timing.compute(summary.flops, blocks, launch.threads)
    write = timing.write(summary.written)
    ticks = timing.combine(compute, read + write)
    written, bytes_read = summary.written, summary.total_read
    return Estimate(ticks, summary.flops, bytes_read, written, read, write, compute, launch, coalesced)


def time_of_pair(
    timing: Timing, pair: SummaryPair, first: Estimate, second: Estimate, launch: Launch, coalesced: bool
) -> Estimate:
    """The producer fused into the consumer, whose estimates are given (`EstimateRunTimeForFusionImpl`)."""
    flops, read, bytes_read = _work_of_pair(timing, pair, first, second, launch, coalesced)
    compute = timing.compute(flops, launch.blocks, launch.threads)
    write, written = second.write, second.bytes_written
    ticks = timing.combine(compute, read + write)
    return Estimate(ticks, flops, bytes_read, written, read, write, compute, launch, coalesced)


def in_step(pair: SummaryPair, launch: Launch) -> bool:
    """Neighbours read side by side, the two not being reductions one after the other in one kernel."""
    return not (pair.producer.is_reduction and pair.consumer.is_reduction and launch.kind == "reduction")


def ticks_of_pair(
    timing: Timing, pair: SummaryPair, first: Estimate, second: Estimate, launch: Launch
) -> int:
    """The time alone, all that most pairs are asked for, where nothing reads across the grain of memory."""
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
    timing: Timing, pair: SummaryPair, first: Estimate, second: Estimate, launch: Launch, coalesced: bool
) -> tuple[int, int, int]:
    """Flops of both, and ticks and bytes of what both read."""
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
    """Ticks of reading all operands and each; `blocks` at most those that saturate the memory."""
    cached = summary.reads.get((blocks, coalesced))
    if cached is None:
        each = timing.read_each(summary.operands, summary.operand_bytes, coalesced, blocks)
        cached = summary.reads[blocks, coalesced] = (sum(each), each)
    return cached
