"""Tiles for fusions that Triton emits, else kernels (`xla/…/combined_gpu_performance_model.cc`)."""

from typing import TYPE_CHECKING

from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Release
from .gpu.device import DeviceDescription
from .gpu.estimate import Estimate
from .gpu.launch import Launch
from .gpu.merging import kernel_model
from .gpu.model import KernelModel
from .gpu.ticks import INFINITE
from .tiling.constraints import Refusal, Tiling

if TYPE_CHECKING:
    from .tiling.model import TilingModel


class CombinedModel(KernelModel):
    """A `KernelModel` that estimates generic Triton fusions by a `TilingModel`."""

    def __init__(
        self,
        device: DeviceDescription,
        release: Release,
        tables: SharedTables | None = None,
    ) -> None:
        super().__init__(device, release, self._tiled_run, shared=tables)

    @property
    def tiling(self) -> "TilingModel":
        """The tiled model, made on first use: without Triton fusions numpy is not imported."""
        tiling = self.tables.tiling
        if tiling is None:
            from .tiling.model import TilingModel

            tiling = self.tables.tiling = TilingModel(self.device, self.release)
        return tiling

    def tile(self, producer: Instruction, consumer: Instruction) -> Tiling | Refusal:
        """The best tiling of a pair; its cost becomes the pair time, as in XLA's Triton check."""
        tiling = self.tiling.best_tiling(producer, consumer)
        if isinstance(tiling, Tiling):
            self.cache[producer].times[consumer] = tiling.estimate
        return tiling

    def _tiled_run(self, fusion: Instruction) -> Estimate:
        tiling = self.tiling.run_time(fusion)
        if isinstance(tiling, Tiling):
            return tiling.estimate
        return Estimate(INFINITE, 0, 0, 0, 0, 0, 0, Launch("triton", 0, 0), True)


def model_of(device: DeviceDescription, release: Release, tables: SharedTables | None = None) -> KernelModel:
    """The kernel model of that release; only that of priority fusion includes tiles."""
    if release.mlir_emitters:
        return CombinedModel(device, release, tables=tables)
    return kernel_model(device, release, tables)
