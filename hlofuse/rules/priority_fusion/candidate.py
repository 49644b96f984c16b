"""The candidates of PriorityFusion: a producer fused into a consumer."""

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.summary import SummaryPair
from hlofuse.cost.tiling.constraints import Refusal
from hlofuse.cost.tiling.tiling import Tiling
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.graph import Instruction
from hlofuse.rules.instruction_fusion import FusionState
from hlofuse.rules.settings import Settings


@dataclass(slots=True)
class PriorityState:
    """What a run of the pass knows besides the graph."""

    model: CombinedModel
    settings: Settings
    triton: TritonSupport
    tiled: Callable[[Instruction, Instruction], Tiling | Refusal]
    """The best tiling of a pair of which one is a Triton fusion, as XLA's cache answers."""
    in_place: FusionState
    """For the in-place rules, which all fusion passes share."""


@dataclass(slots=True)
class PriorityPair:
    """The question: `producer` is an operand of `consumer`."""

    producer: Instruction
    consumer: Instruction
    state: PriorityState
    cached_pair: SummaryPair | None = None
    """The structure of the two, where somebody has it already."""

    @property
    def structure(self) -> SummaryPair:
        """What there is to know of the two whatever their names."""
        pair = self.cached_pair
        if pair is None:
            pair = self.cached_pair = self.state.model.pair(self.producer, self.consumer)
        return pair
