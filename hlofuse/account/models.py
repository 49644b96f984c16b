"""The cost model of the release that was replayed."""

from __future__ import annotations

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.shared_tables import SharedTables
from hlofuse.releases import Release


def model_of(device: DeviceDescription, release: Release, tables: SharedTables | None = None) -> KernelModel:
    """What estimates kernels in that release; only that of priority fusion knows tiles."""
    if release.mlir_emitters:
        return CombinedModel(device, release, tables=tables)
    return kernel_model(device, release, tables)
