"""Tile sizes in a fusion's backend config (`xla/service/gpu/model/block_level_parameters.h`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.cost.gpu.backend_config import TRITON, fusion_config, gpu_config_text
from hlofuse.ir.graph import Instruction


@dataclass(frozen=True, slots=True)
class BlockLevelParameters:
    """Tile sizes of each output, the warps of a block, and how far a dot's loads run ahead."""

    output_tile_sizes: tuple[tuple[int, ...], ...]
    num_warps: int
    num_stages: int = 1


def block_level_parameters(instruction: Instruction) -> BlockLevelParameters | None:
    """What the backend config of a Triton fusion says, None where it says nothing."""
    config = fusion_config(instruction)
    if config is None or not config.num_warps:
        return None
    return BlockLevelParameters(config.tile_sizes, config.num_warps, config.num_stages)


def backend_config_text(parameters: BlockLevelParameters) -> str:
    """The backend config XLA gives a new Triton fusion (`GetTritonGpuBackendConfig`), as it prints it."""
    tiles = [{"sizes": [str(n) for n in sizes]} for sizes in parameters.output_tile_sizes]
    block = {
        "num_warps": str(parameters.num_warps),
        "output_tiles": tiles,
        "num_ctas": 1,
        "num_stages": parameters.num_stages,
        "is_tma_allowed": False,
        "is_warp_specialization_allowed": False,
        "waves_per_eu": 0,
        "num_tiles_per_pid": 0,
    }
    return gpu_config_text("fusion_backend_config", {"kind": TRITON, "block_level_fusion_config": block})
