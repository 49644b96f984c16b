"""What the models know of an instruction or fusion as a whole, by structure.

A `Summary` holds every figure that evaluating an instruction alone, or a pair of a producer and
a consumer, needs; no evaluation walks a fused computation. Instructions of equal structure share
one summary, and so do fusions made in the same way from parts of equal structure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.cost.gpu.atoms import KEEPS_ROLLED, SCATTERS, Atom
from hlofuse.cost.gpu.backend_config import FusionConfig
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.heroes import Root
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.ticks import fp32

FEW_OPERANDS = 40
LITTLE_CODE = 96.0
"""Instructions emitted, `ir_size`."""


@dataclass(slots=True, init=False, eq=False)
class Summary:
    """One structure. Lists run over operand slots, or parameters of a fusion."""

    number: int
    """Tells structures apart in keys."""
    atom: Atom | None
    """None for a fusion."""
    is_fusion: bool
    config: FusionConfig | None
    """The backend config, part of the structure because it may name the emitter."""
    is_triton: bool
    """A generic Triton fusion (`IsGenericTritonFusion`)."""
    composes: bool
    """The summary of a fusion with it as a part follows from its own (`composing`)."""
    elementwise: bool
    operands: Sequence[ShapeFacts]
    first_slots: Sequence[int]
    """For each slot the first one with the same operand; empty where all operands differ."""
    flops: int
    written: int
    """Bytes."""
    operand_bytes: Sequence[int]
    """Bytes read of each operand; a repeated operand has those of its first slot."""
    total_read: int
    utilization: Sequence[float]
    ir_size: float
    own_ir_size: float
    """The same without the parameters, which the parts of a fusion may share."""
    parameter_ir_size: Sequence[int]
    splits: float
    """New blocks of code inside (`BasicBlockSplitCount`); the MLIR emitters begin none."""
    parameter_uses: Sequence[frozenset[int]]
    """The roots of element-wise use of each parameter; 0 is the fusion's own root."""
    root_utilization: Sequence[float]
    root_emitted: Sequence[int]
    inside: tuple[Sequence[float], Sequence[int], Sequence[int]] | None
    """Utilization, bytes read and code emitted of the parameters where this is part of a fusion. None where
    rounding might make them others there."""
    granule: float
    """A power of two dividing every summand of `flops` (see `utilization`)."""
    whole: bool
    """Every read inside is of a whole number of elements."""
    roots: Sequence[Root]
    clean: Sequence[bool]
    """Nothing but operations a hero may lie beyond uses the parameter, directly or not."""
    features: int
    minor_of_transpose: int
    crossed: frozenset[int]
    """Parameters that something inside reads across the grain of memory, directly or nearly so."""
    bad_transpose: bool
    """Something inside reads across the grain of memory. Of a plain instruction its neighbours decide."""
    is_reduction: bool
    """`IsInputFusibleReduction`."""
    is_tuple: bool
    """The result is a tuple."""
    is_plain: bool
    """It neither reduces nor scatters, takes no shared memory and has one result: few rules concern it."""
    is_small: bool
    """It is plain, with `FEW_OPERANDS` at most and no more than `LITTLE_CODE` in one piece."""
    keeps_loop: bool
    """Emitted as a loop, it is the same loop with any producer in that `leaves_loops`."""
    leaves_loops: bool
    """It has nothing that the kernel of its consumer could be about, or that keeps a loop rolled."""
    shared_memory: int
    unnested_reductions: int
    significant_reduce: bool
    skipped: frozenset[int]
    """Parameters that are outputs and nothing else: not fused into a consumer."""
    reads: dict[tuple[int, bool], tuple[int, list[int]]]
    """Ticks of reading the operands: sum and each, by blocks and coalescing. Kept, like the next three, once
    worked out."""
    launch: Launch | None
    loop: Launch | None
    """The same if it is a loop that any producer in that `leaves_loops` leaves as it is."""
    estimates: list[Estimate | None]
    """By whether it reads across the grain of memory."""

    def slots_like(self, slot: int) -> list[int]:
        """All slots with the operand whose first slot is `slot`."""
        if not self.first_slots:
            return [slot]
        return [k for k, first in enumerate(self.first_slots) if first == slot]

    def common_utilization(self, a: int, b: int) -> float:
        """How often two parameters are read together (`CommonElementwiseUtilization`)."""
        both = self.parameter_uses[a] & self.parameter_uses[b]
        if len(both) == 1:
            return self.root_utilization[next(iter(both))]
        total = 0.0
        for number in both:
            total = fp32(total + self.root_utilization[number])
        return total

    def common_with_root(self, parameter: int) -> float:
        """How often a fusion's parameter is read together with its root, in step with it."""
        return self.root_utilization[0] if 0 in self.parameter_uses[parameter] else 0.0


def complete(summary: Summary) -> None:
    """What follows from all the rest."""
    summary.reads = {}
    classify(summary)
    summary.total_read = sum(summary.operand_bytes)
    summary.own_ir_size = summary.ir_size - sum(summary.parameter_ir_size) if summary.is_fusion else 1.0
    summary.composes = not (
        summary.skipped
        or None in [r.atom for r in summary.roots]
        or True in [o.is_tuple for o in summary.operands]
    )


def classify(summary: Summary) -> None:
    """Whether it is plain and small, and what it does to loops."""
    features = summary.features
    summary.is_plain = not (
        summary.is_tuple
        or summary.shared_memory
        or summary.unnested_reductions
        or summary.significant_reduce
        or summary.is_reduction
        or features & SCATTERS
    )
    few = len(summary.operands) <= FEW_OPERANDS and summary.ir_size <= LITTLE_CODE
    summary.is_small = few and summary.is_plain and not summary.splits
    summary.leaves_loops = summary.keeps_loop = False
    root = summary.roots[0] if summary.roots else None
    if root is not None and root.chain_end is not None:
        found = root.transposes or root.concatenates or root.chain_end.opcode == "reduce"
        summary.leaves_loops = not (found or features & KEEPS_ROLLED)
        writes_all = root.update is None and root.updated_parameter < 0
        summary.keeps_loop = writes_all and len(summary.roots) == 1
