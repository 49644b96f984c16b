"""The cost model of the release that was replayed."""

from __future__ import annotations

from hlofuse.analysis.release import Release
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import KernelModel


def model_of(device: DeviceDescription, release: Release) -> KernelModel:
    """What estimates kernels in that release; only that of priority fusion knows tiles."""
    return CombinedModel(device) if release.mlir_emitters else kernel_model(device, release)
