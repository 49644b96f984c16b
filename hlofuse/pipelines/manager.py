"""The pass manager: it runs what a backend runs before fusion."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.pipelines.targets import before_fusion
from hlofuse.trace import OnlySkipped, Skipped
from hlofuse.trace.provenance import Provenance


@dataclass(frozen=True)
class FusionInput:
    """A module as it may enter the fusion passes."""

    module: Module
    left_alone: tuple[Skipped, ...] = ()
    """Instructions that XLA rewrites and the passes could not."""


def lower_to_fusion_input(
    module: Module,
    target: str,
    device: DeviceDescription | None = None,
    without: Collection[str] = (),
    provenance: Provenance | None = None,
) -> FusionInput:
    """What `target` does before fusion, done to a copy, `without` the passes of these names.

    `provenance` learns what becomes of each instruction.
    HlofuseError only where calls would multiply beyond reason.
    """
    out, recorder = copy_module(module), OnlySkipped()
    if provenance is not None:
        provenance.begin(out)

    def run(step: Pass) -> bool:
        recorder.begin_pass(step.name)
        if provenance is not None:
            provenance.begin_pass(step.name)
        return step.name not in without and step.run(out, recorder)

    for pipeline in before_fusion(target, device):
        pipeline.run_with(run)
    if provenance is not None:
        provenance.end()
    out.order_source = "replayed"
    return FusionInput(out, tuple(recorder.left_alone))
