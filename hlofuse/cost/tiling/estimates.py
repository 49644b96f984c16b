"""The tiled model's answers in the form in which the kernel-time model keeps run times."""

from __future__ import annotations

from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.model import Estimate
from hlofuse.cost.tiling.model import Tiling


def estimate_of(tiling: Tiling) -> Estimate:
    """The estimate of a fusion that runs with this tiling (`EstimateRunTimeData`)."""
    return Estimate(
        ticks=tiling.exec_time,
        flops=tiling.flops,
        bytes_read=tiling.bytes_read,
        bytes_written=tiling.bytes_written,
        read=tiling.read_time,
        write=tiling.write_time,
        compute=tiling.compute_time,
        launch=Launch("triton", tiling.blocks, tiling.threads),
        coalesced=True,
    )
