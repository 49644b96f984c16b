"""Terms of an estimate's reading time, by operand: for explaining, not for deciding.

Follows `GpuPerformanceModel::EstimateRunTimeForFusionImpl` step by step, where `KernelModel` takes short
cuts; the sums are the same.
"""

from typing import NamedTuple

from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.summary import Summary
from hlofuse.cost.gpu.ticks import fp32, single_half_away
from hlofuse.ir.graph import Instruction


class OperandRead(NamedTuple):
    operand: Instruction
    size: int
    read: int
    """Bytes read; bytes beyond `size` are read again, from a cache where it fits."""
    ticks: int
    share: float
    """The used share of each memory transaction."""

    @property
    def times(self) -> float:
        return self.read / self.size if self.size else 0.0


def operand_reads(model: KernelModel, instruction: Instruction) -> list[OperandRead]:
    """The reads of a single instruction; not for generic Triton fusions, which read by tiles."""
    estimate, summary = model.run_time(instruction), model.summary(instruction)
    return [
        _operand_read(model, estimate, operand, facts, total)
        for operand, facts, total in zip(
            instruction.operands, summary.operands, summary.operand_bytes, strict=True
        )
    ]


def pair_operand_reads(model: KernelModel, producer: Instruction, consumer: Instruction) -> list[OperandRead]:
    """The reads of the consumer with the producer fused in: its own operands, then the producer's."""
    estimate = model.pair_time(producer, consumer)
    a, b = model.summary(producer), model.summary(consumer)
    slot = consumer.operands.index(producer)
    operands = [o for o in consumer.operands if o is not producer]
    for k, operand in enumerate(producer.operands):
        if operand not in operands and k not in a.skipped:
            operands.append(operand)
    reads = []
    for operand in operands:
        total = 0
        facts: ShapeFacts | None = None
        if operand in producer.operands:
            k = producer.operands.index(operand)
            facts = a.operands[k]
            total = single_half_away(fp32(a.operand_bytes[k]) * b.utilization[slot])
        if operand in consumer.operands:
            both = consumer.operands.index(operand)
            total += b.operand_bytes[both]
            if facts is not None:
                common = _read_together(a, producer.operands.index(operand), b, both, slot)
                total -= single_half_away(facts.size_fp32 * common)
            facts = b.operands[both]
        assert facts is not None
        reads.append(_operand_read(model, estimate, operand, facts, total))
    return reads


def _operand_read(
    model: KernelModel, estimate: Estimate, operand: Instruction, facts: ShapeFacts, total: int
) -> OperandRead:
    rate = 1.0 if estimate.coalesced else model.timing.uncoalesced_rate(facts.element_bytes)
    net = min(facts.size, total)
    ticks = model.timing.read_at_rate(net, total, rate, estimate.launch.blocks)
    return OperandRead(operand, facts.size, total, ticks, rate)


def _read_together(a: Summary, parameter: int, b: Summary, both: int, slot: int) -> float:
    """`GetCommonUtilization`."""
    if not (a.elementwise or (a.is_fusion and a.common_with_root(parameter) == 1.0)):
        return 0.0
    if b.is_fusion:
        return b.common_utilization(both, slot)
    return 1.0 if b.elementwise else 0.0
