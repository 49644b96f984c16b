"""The tiled model for fusions that Triton emits: which tilings there are, what each costs, which XLA takes.

    model = TilingModel(device)
    model.best_tiling(producer, consumer)   # a Tiling, or a Refusal with XLA's words
    model.run_time(triton_fusion)           # with the tile sizes its backend config says
    TritonSupport(device).refusal(producer) # None, or why it may not join a Triton fusion

The model itself is imported when it is first asked for: it needs numpy, and most modules have no
Triton fusion.
"""

from typing import TYPE_CHECKING

from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.tiling.block_level import (
    BlockLevelParameters,
    backend_config_text,
    block_level_parameters,
)
from hlofuse.cost.tiling.refusals import Refusal
from hlofuse.cost.tiling.tiling import Tiling
from hlofuse.cost.tiling.triton_support import TritonSupport

if TYPE_CHECKING:
    from hlofuse.cost.tiling.model import TilingModel

__all__ = [
    "BlockLevelParameters",
    "Refusal",
    "Tiling",
    "TilingModel",
    "TritonSupport",
    "backend_config_text",
    "block_level_parameters",
    "is_generic_triton_fusion",
]


def __getattr__(name: str) -> object:
    if name == "TilingModel":
        from hlofuse.cost.tiling.model import TilingModel

        return TilingModel
    raise AttributeError(name)
