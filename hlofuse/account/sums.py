"""The two sums that XLA compares for a producer."""

from __future__ import annotations

from dataclasses import replace

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.cost.tiling.tiling import Tiling
from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused


def sums(model: KernelModel, producer: Instruction) -> tuple[int, int]:
    """What XLA compares, in ticks: everything apart, and the producer in all its users (full form)."""
    users = producer.users
    launch = model.device.launch_ticks
    unfused = launch * (len(users) + 1) + model.run_time(producer).ticks
    fused = launch * len(users)
    for user in users:
        unfused += model.run_time(user).ticks
        fused += pair_estimate(model, producer, user).ticks
    return min(unfused, INFINITE), min(fused, INFINITE)


def pair_estimate(model: KernelModel, producer: Instruction, consumer: Instruction) -> Estimate:
    """The pair's time; through the tiles where Triton emits it."""
    known = model.kept_pair_time(producer, consumer)
    if known is not None:
        return known
    triton = any(
        x.opcode == "fusion" and x.fusion_kind == "kCustom" and may_be_fused(x) for x in (producer, consumer)
    )
    if not triton or not isinstance(model, CombinedModel) or is_fusible_bitcast(consumer):
        return model.pair_time(producer, consumer)
    tiled = isinstance(model.tile(producer, consumer), Tiling)  # then that has become the pair's time
    estimate = model.pair_time(producer, consumer)
    return estimate if tiled else replace(estimate, ticks=INFINITE)
