"""What the models know of an instruction or fusion as a whole, by structure.

A `Summary` holds every figure that evaluating an instruction alone, or a pair of a producer and
a consumer, needs; no evaluation walks a fused computation. Instructions of equal structure share
one summary, and so do fusions made in the same way from parts of equal structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hlofuse.cost.gpu.atoms import KEEPS_ROLLED, SCATTERS, Atom
from hlofuse.cost.gpu.backend_config import FusionConfig
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.heroes import Root, fuse_root
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.ticks import EXACT, fp32
from hlofuse.ir.graph import Instruction

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


_MOST_SPLITS = 32
"""More than ten are too many anyway."""


@dataclass(slots=True, init=False, eq=False)
class SummaryPair:
    """The structures of two instructions and which operands they share: equal pairs fuse to equal fusions.

    What is worked out for one pair of instructions is kept here for all like it.
    """

    producer: Summary
    consumer: Summary
    slot: int
    """The first slot of the producer among the consumer's operands."""
    shared: Sequence[int | None]
    """For each of the producer's operands the slot where the consumer reads it too, or None. Empty where
    they share none."""
    launch: Launch | None
    ticks: int
    """Its time where nothing inside reads across the grain of memory, which is all that a pass asks of most
    pairs; -1 until it is worked out."""
    estimates: dict[bool, Estimate] | None
    """All there is to say of that time, by whether something inside reads across the grain of memory."""
    fused: dict[FusionConfig | None, Summary] | None
    """The summary of the two fused, by the fusion's config."""
    _roots: Sequence[Root] | None

    @property
    def roots(self) -> Sequence[Root]:
        """The consumer's roots as they are with the producer in."""
        roots = self._roots
        if roots is None:
            b, slot, inside = self.consumer, self.slot, self.producer.roots[0]
            clean = b.clean[slot]
            roots = self._roots = [fuse_root(root, clean, slot, inside) for root in b.roots]
        return roots

    @property
    def merged_ir_size(self) -> int:
        """Instructions emitted after fusing, copies counted; each new block doubles them."""
        a, b = self.producer, self.consumer
        copies = b.parameter_ir_size[self.slot]
        size = a.ir_size * copies
        total = size + b.ir_size
        if a.splits or b.splits:
            return int(total) << min(int(copies * a.splits + b.splits), _MOST_SPLITS)
        return int(total) if total < EXACT else int(fp32(fp32(size) + b.ir_size))

    @property
    def slots(self) -> list[int]:
        """All slots at which the consumer reads the producer."""
        return self.consumer.slots_like(self.slot)


def _slot_of_result(operands: Sequence[Instruction], producer: Instruction) -> int:
    """The first place where one of several results of a finished kernel is read."""
    return next(
        k for k, o in enumerate(operands) if o.opcode == "get-tuple-element" and o.operands[0] is producer
    )


class PairTable:
    """Finds the pair of two instructions."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[Any, ...], SummaryPair] = {}

    def of(
        self, producer: Instruction, first: Summary, consumer: Instruction, second: Summary
    ) -> SummaryPair:
        """`first` and `second` are the summaries of the two."""
        operands = consumer.operands
        shared: Sequence[int | None] = ()
        if len(operands) == 1:
            slot = 0
        else:
            try:
                slot = operands.index(producer)
            except ValueError:
                slot = _slot_of_result(operands, producer)
            incoming = producer.operands
            for operand in incoming:
                # What only the producer uses the consumer does not; most pairs share nothing.
                if len(operand.users) > 1 and operand in operands:
                    shared = tuple([operands.index(o) if o in operands else None for o in incoming])
                    break
        key = (first.number, second.number, slot, shared)
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = SummaryPair()
            pair.producer, pair.consumer, pair.slot, pair.shared = first, second, slot, shared
            pair.launch = pair._roots = pair.fused = pair.estimates = None
            pair.ticks = -1
        return pair


# What a model keeps of an instruction until that changes.

Timed: TypeAlias = SummaryPair | Estimate
"""What has the ticks of a pair: its structure if they are all that was asked for."""


class CacheEntry:
    """The cache's entries of one instruction (`GpuPerformanceModelCache`), and whether it may be fused."""

    __slots__ = ("answers", "run", "times")

    run: Estimate | None
    times: dict[Instruction, Timed]
    """With it in each of its users."""
    answers: dict[Instruction, Any]
    """For each user what somebody has found out of the two: the structure if one may go into the other,
    otherwise whatever says why not."""

    def __init__(self) -> None:
        self.run = None
        self.times = {}
        self.answers = {}


class EstimateCache(dict[Instruction, CacheEntry]):
    """What is kept of each instruction; nothing yet where nobody has asked."""

    def __missing__(self, instruction: Instruction) -> CacheEntry:
        entry = self[instruction] = CacheEntry()
        return entry

    def copy(self) -> EstimateCache:
        """Another one, in which others may keep more."""
        new = EstimateCache()
        for instruction, source in self.items():
            entry = new[instruction]
            entry.run, entry.times, entry.answers = source.run, dict(source.times), dict(source.answers)
        return new
