"""One pair in full."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.terms import OperandRead, operand_reads, pair_operand_reads
from hlofuse.explainer.costs.figures import PairDetail, ReadTerm, StepCost, kernel_time, us
from hlofuse.explainer.costs.flips import flips
from hlofuse.explainer.costs.remarks import remarks
from hlofuse.explainer.costs.sums import pair_estimate, sums
from hlofuse.ir.instruction import Instruction
from hlofuse.rules.gpu_fusible import is_fusible_bitcast


def pair_detail(model: CombinedModel, producer: Instruction, consumer: Instruction) -> PairDetail | None:
    """The cost story of a pair in the graph as it stands; None where the model has no figures."""
    first, second = model.run_time(producer), model.run_time(consumer)
    fused = pair_estimate(model, producer, consumer)
    times = kernel_time(first), kernel_time(second), kernel_time(fused)
    if times[0] is None or times[1] is None or times[2] is None:
        return None
    kernels = [u for u in producer.users if not is_fusible_bitcast(u)]
    leaves = len(kernels) == len(producer.users)
    unfused_sum, fused_sum = sums(model, producer)
    by_tiles = any("triton" in (model.run_time(x).launch.kind) for x in (producer, *producer.users))
    return PairDetail(
        StepCost(*times, len(kernels), leaves, model.device.launch_overhead_us),  # type: ignore[arg-type]  # told apart above
        us(unfused_sum),
        us(fused_sum),
        len(producer.users),
        () if by_tiles else _terms(operand_reads(model, consumer)),
        () if by_tiles else _terms(pair_operand_reads(model, producer, consumer)),
        () if by_tiles else flips(model.device, producer),
        remarks(producer, consumer),
    )


def _terms(reads: Sequence[OperandRead]) -> tuple[ReadTerm, ...]:
    found = [ReadTerm(r.operand.name, str(r.operand.shape), r.size, r.read, us(r.ticks)) for r in reads]
    found.sort(key=lambda t: -t.us)
    return tuple(found)
