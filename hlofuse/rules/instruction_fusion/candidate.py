"""The candidates of instruction fusion: a producer fused into a consumer."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hlofuse.analysis.in_place import ReusedOperands
from hlofuse.analysis.indexing_evaluation import IndexingEvaluation
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Release
from hlofuse.rules.settings import Settings


@dataclass(slots=True)
class FusionState:
    """What a run of the pass knows besides the graph."""

    may_duplicate: bool
    release: Release
    settings: Settings
    is_expensive: Callable[[Instruction], bool]
    reused: ReusedOperands = field(default_factory=ReusedOperands)
    skipped: set[Instruction] = field(default_factory=set)
    """Consumers the target leaves alone altogether."""
    evaluations: dict[Instruction, IndexingEvaluation] = field(default_factory=dict)

    def evaluation(self, fusion: Instruction) -> IndexingEvaluation:
        """Emission counts of a fusion; made when first asked for, then kept up to date by the pass."""
        found = self.evaluations.get(fusion)
        if found is None:
            found = self.evaluations[fusion] = IndexingEvaluation(fusion)
        return found


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """The question: `producer` is operand `operand_index` of `consumer`."""

    producer: Instruction
    consumer: Instruction
    operand_index: int
    state: FusionState
