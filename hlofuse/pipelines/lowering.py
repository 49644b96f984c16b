"""Simplifications by target: the pipelines that run ahead of fusion."""

from __future__ import annotations

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.base import Pipeline


def pipelines_of(target: str, device: DeviceDescription | None = None) -> tuple[Pipeline, ...]:
    """What runs ahead of fusion, in order; nothing for a target or device of which it is not known."""
    if target == "gpu" and device is not None and device.platform == "CUDA":
        from hlofuse.pipelines.gpu.pipelines import gpu_pipelines

        return gpu_pipelines(device)
    if target == "cpu":
        from hlofuse.pipelines.cpu import CPU

        return CPU
    return ()
