"""The pass manager: it runs what a backend runs before fusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.passes.control_flow.sharding_remover import changes_shape
from hlofuse.pipelines.targets import before_fusion
from hlofuse.trace import OnlySkipped, Skipped


@dataclass(frozen=True)
class FusionInput:
    """A module as it may enter the fusion passes."""

    module: Module
    left_alone: tuple[Skipped, ...] = ()
    """Instructions that XLA rewrites and the passes could not."""
    not_repeated: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Passes that are not implemented and had something to work on: how many of each opcode."""


def lower_to_fusion_input(
    module: Module,
    target: str,
    device: DeviceDescription | None = None,
    without: Collection[str] = (),
) -> FusionInput:
    """What `target` does before fusion, done to a copy, `without` the passes of these names.

    HlofuseError where calls would multiply beyond reason, and for a program partitioned by hand that the
    partitioner has not seen.
    """
    _refuse_manual_partitioning(module)
    out, recorder = copy_module(module), OnlySkipped()

    def run(step: Pass) -> bool:
        recorder.begin_pass(step.name)
        return step.name not in without and step.run(out, recorder)

    for pipeline in before_fusion(target, device):
        pipeline.run_with(run)
    out.order_source = "replayed"
    return FusionInput(out, tuple(recorder.left_alone), recorder.not_repeated)


def _refuse_manual_partitioning(module: Module) -> None:
    if any(changes_shape(i) for i in module.instructions()):
        number = module.attributes.raw("num_partitions")
        devices = f"{number} devices" if number else "several devices"
        raise HlofuseError(
            f"{module.name} is partitioned by hand over {devices} (SPMDFullToShardShape), and this module is"
            " from before the partitioner ran; give the dump after spmd-partitioning, or the one that"
            " enters fusion"
        )
