"""A module after fusion: the fusions that are there, and why two kernels are still two."""

from __future__ import annotations

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.inputs.stage import Stage
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.pipelines import ASKS_FOR_DEVICE, TARGETS
from hlofuse.reports.common.model import RuleText
from hlofuse.reports.fused.gpu import gpu_boundaries, legacy_boundaries
from hlofuse.reports.fused.model import Boundary, Fused, kernels_of
from hlofuse.reports.fused.recreate import recreated_boundaries
from hlofuse.rules.catalogue import catalogue


def explain_fused(
    module: Module, target: str, stage: Stage, device: DeviceDescription | None = None
) -> Fused:
    """What stands between the kernels of a module that fusion has gone over.

    HlofuseError for a GPU target without a device.
    """
    if TARGETS[target].needs_device and device is None:
        raise HlofuseError(f"target {target} {ASKS_FOR_DEVICE}")
    if device is None:
        found, how = recreated_boundaries(module, target)
    elif target == "gpu-legacy":
        found, how = legacy_boundaries(module, device)
    else:
        found, how = gpu_boundaries(module, device)
    return Fused(
        module.name,
        target,
        device.name if device is not None else None,
        TARGETS[target].release,
        stage.evidence,
        how,
        kernels_of(module),
        tuple(found),
        _rules(found),
        str(stage.right_file) if stage.right_file is not None else None,
    )


def _rules(found: list[Boundary]) -> dict[str, RuleText]:
    known = catalogue()
    codes = sorted({b.rule for b in found if b.rule is not None})
    return {
        c: RuleText(c, r.title, r.advice, r.message, r.why) for c in codes if (r := known.get(c)) is not None
    }
