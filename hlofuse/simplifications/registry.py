"""Simplifications by target: the pipelines that run ahead of fusion."""

from __future__ import annotations

import importlib

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.simplifications.base import Pipeline

_PIPELINES = {
    "cpu": "hlofuse.simplifications.cpu.pipeline:CPU",
}


def pipelines_of(target: str, device: DeviceDescription | None = None) -> tuple[Pipeline, ...]:
    """What runs ahead of fusion, in order; nothing for a target or device of which it is not known."""
    if target == "gpu" and device is not None and device.platform == "CUDA":
        from hlofuse.simplifications.gpu.pipeline import gpu_pipelines

        return gpu_pipelines(device)
    where = _PIPELINES.get(target)
    if where is None:
        return ()
    module, _, name = where.partition(":")
    found: tuple[Pipeline, ...] = getattr(importlib.import_module(module), name)
    return found
