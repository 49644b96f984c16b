"""The two sums that XLA compares for a producer."""

from __future__ import annotations

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.cost.gpu.timing import KERNEL_LAUNCH
from hlofuse.ir.instruction import Instruction
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused


def sums(model: CombinedModel, producer: Instruction) -> tuple[int, int]:
    """What XLA compares, in ticks: everything apart, and the producer in all its users (full form)."""
    users = producer.users
    unfused = KERNEL_LAUNCH * (len(users) + 1) + model.run_time(producer).ticks
    fused = KERNEL_LAUNCH * len(users)
    for user in users:
        unfused += model.run_time(user).ticks
        fused += pair_estimate(model, producer, user).ticks
    return min(unfused, INFINITE), min(fused, INFINITE)


def pair_estimate(model: CombinedModel, producer: Instruction, consumer: Instruction) -> Estimate:
    """The pair's time; through the tiles where Triton emits it."""
    known = model.pairs_of(producer).get(consumer)
    if known is not None:
        return known
    triton = any(
        x.opcode == "fusion" and x.fusion_kind == "kCustom" and may_be_fused(x) for x in (producer, consumer)
    )
    if triton and not is_fusible_bitcast(consumer):
        model.tile(producer, consumer)  # enters the pair's time where a tiling is found
    return model.pair_time(producer, consumer)
