"""The estimate of a kernel from its structure and its launch (`gpu_performance_model.cc`)."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.pair import Pair
from hlofuse.cost.gpu.summary import Summary
from hlofuse.cost.gpu.ticks import EXACT, fp32, half_away, scaled_sum
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
    timing: Timing, pair: Pair, first: Estimate, second: Estimate, launch: Launch, coalesced: bool
) -> Estimate:
    """The producer fused into the consumer, whose estimates are given (`EstimateRunTimeForFusionImpl`)."""
    b, slot = pair.consumer, pair.slot
    evaluated = b.utilization[slot]
    slots = b.slots_like(slot) if b.first_slots else (slot,)
    if len(slots) > 1:
        for other in slots[1:]:
            evaluated = fp32(evaluated + b.utilization[other])
    own, write = second.flops, second.write
    flops = first.flops + own
    if evaluated != 1.0 or flops >= EXACT:
        flops = int(scaled_sum(first.flops, evaluated, own))

    blocks, most = launch.blocks, timing.saturating_blocks
    read, bytes_read = _read_by_pair(timing, pair, slots, blocks if blocks < most else most, coalesced)
    compute = timing.compute(flops, blocks, launch.threads)
    ticks = timing.combine(compute, read + write)
    written = second.bytes_written
    return Estimate(ticks, flops, bytes_read, written, read, write, compute, launch, coalesced)


def _read_by_pair(
    timing: Timing, pair: Pair, slots: Sequence[int], blocks: int, coalesced: bool
) -> tuple[int, int]:
    """Ticks and bytes of what both read; `slots` are those at which the consumer reads the producer."""
    a, b = pair.producer, pair.consumer
    share, shared = b.utilization[pair.slot], pair.shared
    # Start from all the consumer reads; what the producer changes is replaced.
    key = (blocks, coalesced)
    read, each = b.reads.get(key) or _read_operands(timing, b, blocks, coalesced)
    bytes_read, read_by_b = b.total_read, b.operand_bytes
    for other in slots:
        read -= each[other]
        bytes_read -= read_by_b[other]
    first_slots, skipped = a.first_slots, a.skipped
    if share == 1.0 and not (shared or first_slots or skipped):
        ticks, _ = a.reads.get(key) or _read_operands(timing, a, blocks, coalesced)
        return read + ticks, bytes_read + a.total_read
    time = timing.read
    uses = a.parameter_uses if a.is_fusion else ()
    may_share = (b.is_fusion or b.elementwise) and (a.elementwise or a.is_fusion)
    for k, operand in enumerate(a.operands):
        if first_slots and first_slots[k] != k:
            continue
        total = a.operand_bytes[k]
        both = shared[k] if shared else None
        if share != 1.0:  # byte counts are single precision already
            total = half_away(fp32(total * share))
        if both is None:
            if k not in skipped:
                read += time(operand.size, total, 0 if coalesced else operand.element_bytes, blocks)
                bytes_read += total
            continue
        total += read_by_b[both]
        if may_share and (a.elementwise or 0 in uses[k]):
            # Where both read the operand in step, it is read once (`GetCommonUtilization`).
            common = b.common_utilization(both, pair.slot) if b.is_fusion else 1.0
            if common:
                size = operand.size_fp32
                total -= int(size) if common == 1.0 else half_away(fp32(size * common))
        if total == read_by_b[both]:
            continue
        ticks = time(operand.size, total, 0 if coalesced else operand.element_bytes, blocks)
        for other in b.slots_like(both):
            read += ticks - each[other]
            bytes_read += total - read_by_b[other]
    return read, bytes_read


def _read_operands(timing: Timing, summary: Summary, blocks: int, coalesced: bool) -> tuple[int, list[int]]:
    """Ticks of reading all operands and each; `blocks` at most those that saturate the memory."""
    known = summary.reads.get((blocks, coalesced))
    if known is None:
        time, totals = timing.read, summary.operand_bytes
        each = [
            time(o.size, totals[k], 0 if coalesced else o.element_bytes, blocks)
            for k, o in enumerate(summary.operands)
        ]
        known = summary.reads[blocks, coalesced] = (sum(each), each)
    return known
