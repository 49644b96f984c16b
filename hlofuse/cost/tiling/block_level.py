"""Tile sizes in a fusion's backend config (`xla/service/gpu/model/block_level_parameters.h`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from hlofuse.ir.instruction import Instruction

TRITON_FUSION_KIND = "__triton"


@dataclass(frozen=True, slots=True)
class BlockLevelParameters:
    """Tile sizes of each output, and the warps of a block."""

    output_tile_sizes: tuple[tuple[int, ...], ...]
    num_warps: int


@lru_cache(maxsize=4096)
def _fusion_config(text: str) -> tuple[str, BlockLevelParameters | None]:
    try:
        config = json.loads(text).get("fusion_backend_config", {})
    except (ValueError, AttributeError):
        return "", None
    kind = str(config.get("kind", ""))
    block = config.get("block_level_fusion_config")
    if not block:
        return kind, None
    tiles = tuple(tuple(int(n) for n in t.get("sizes", ())) for t in block.get("output_tiles", ()))
    return kind, BlockLevelParameters(tiles, int(block.get("num_warps", 0)))


def fusion_config_kind(instruction: Instruction) -> str:
    """`kind` in the backend config of a fusion, empty if there is none."""
    text = instruction.attributes.raw("backend_config")
    return _fusion_config(text)[0] if text else ""


def is_generic_triton_fusion(instruction: Instruction) -> bool:
    """A fusion that Triton emits, other than a matrix product's (`IsGenericTritonFusion`)."""
    return instruction.opcode == "fusion" and fusion_config_kind(instruction) == TRITON_FUSION_KIND


def block_level_parameters(instruction: Instruction) -> BlockLevelParameters | None:
    """What the backend config of a Triton fusion says, None where it says nothing."""
    text = instruction.attributes.raw("backend_config")
    return _fusion_config(text)[1] if text else None


def backend_config_text(parameters: BlockLevelParameters) -> str:
    """The backend config XLA gives a new Triton fusion (`GetTritonGpuBackendConfig`), as it prints it."""
    tiles = [{"sizes": [str(n) for n in sizes]} for sizes in parameters.output_tile_sizes]
    block = {
        "num_warps": str(parameters.num_warps),
        "output_tiles": tiles,
        "num_ctas": 1,
        "num_stages": 1,
        "is_tma_allowed": False,
        "is_warp_specialization_allowed": False,
        "waves_per_eu": 0,
        "num_tiles_per_pid": 0,
    }
    config = {
        "operation_queue_id": "0",
        "fusion_backend_config": {"kind": TRITON_FUSION_KIND, "block_level_fusion_config": block},
        "force_earliest_schedule": False,
        "reification_cost": [],
        "device_type": "DEVICE_TYPE_INVALID",
    }
    return json.dumps(config, separators=(",", ":"))
