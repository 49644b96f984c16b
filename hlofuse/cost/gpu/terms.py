"""Terms of an estimate's reading time, by operand: for explaining, not for deciding."""

from typing import NamedTuple

from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.timing import pair_reads
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
    estimate, pair = model.pair_time(producer, consumer), model.pair(producer, consumer)
    outer, inner, each = pair_reads(pair)
    reads = [(consumer.operands[k], pair.consumer.operands[k]) for k in outer]
    reads += [(producer.operands[k], pair.producer.operands[k]) for k in inner]
    return [
        _operand_read(model, estimate, operand, facts, read)
        for (operand, facts), read in zip(reads, each, strict=True)
    ]


def _operand_read(
    model: KernelModel, estimate: Estimate, operand: Instruction, facts: ShapeFacts, total: int
) -> OperandRead:
    rate = 1.0 if estimate.coalesced else model.timing.uncoalesced_rate(facts.element_bytes)
    net = min(facts.size, total)
    ticks = model.timing.read_at_rate(net, total, rate, estimate.launch.blocks)
    return OperandRead(operand, facts.size, total, ticks, rate)
