"""Summaries: figures of an instruction or fusion as a whole, by structure. A `Summary` holds every figure
that evaluating an instruction alone, or a pair of a producer and a consumer, needs; no evaluation walks a
fused computation. Instructions of equal structure share one summary, and so do fusions of equal parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from hlofuse.ir.graph import Instruction
from .atoms import Atom
from .backend_config import FusionConfig
from .estimate import Estimate, Launch
from .heroes import Root, fuse_root
from .shapes import ShapeFacts
from .ticks import EXACT, fp32


@dataclass(slots=True, init=False, eq=False)
class Summary:
    """One structure. Lists are by operand slot, or by parameter of a fusion."""

    number: int  # A unique number, for keys
    atom: Atom | None  # None for a fusion
    is_fusion: bool
    config: FusionConfig | None  # The backend config, part of the structure because it may name the emitter
    is_triton: bool  # A generic Triton fusion (`IsGenericTritonFusion`)
    elementwise: bool
    operands: Sequence[ShapeFacts]
    first_slots: Sequence[int]  # For each slot the first with the same operand; empty where all differ
    flops: int
    written: int
    operand_bytes: Sequence[int]  # Bytes read of each operand; a repeated operand has those of its first slot
    total_read: int
    utilization: Sequence[float]
    ir_size: float
    parameter_ir_size: Sequence[int]
    splits: float  # New basic blocks inside (`BasicBlockSplitCount`); the MLIR emitters begin none
    parameter_uses: Sequence[frozenset[int]]
    """The roots of element-wise use of each parameter of a fusion; 0 is its own root."""
    root_utilization: Sequence[float]
    roots: Sequence[Root]
    clean: Sequence[bool]  # True if only operations a hero may lie beyond use the parameter, directly or not
    features: int
    minor_of_transpose: int
    bad_transpose: bool
    """True if an instruction inside reads against memory order; for a plain one its neighbours decide."""
    is_reduction: bool  # True for an input-fusible reduction (`IsInputFusibleReduction`)
    is_tuple: bool
    shared_memory: int
    unnested_reductions: int
    significant_reduce: bool
    skipped: frozenset[int]  # Parameters that are only outputs: not fused into a consumer
    launch: Launch | None
    estimates: list[Estimate | None]  # Estimates, by whether it reads across the grain of memory

    def common_utilization(self, a: int, b: int) -> float:
        """The common reads of two parameters (`CommonElementwiseUtilization`)."""
        both = self.parameter_uses[a] & self.parameter_uses[b]
        if len(both) == 1:
            return self.root_utilization[next(iter(both))]
        total = 0.0
        for number in both:
            total = fp32(total + self.root_utilization[number])
        return total

    def common_with_root(self, parameter: int) -> float:
        """The common reads of a fusion's parameter and its root, in step."""
        return self.root_utilization[0] if 0 in self.parameter_uses[parameter] else 0.0


_MOST_SPLITS = 32  # a limit above XLA's, which is ten


@dataclass(slots=True, init=False, eq=False)
class SummaryPair:
    """The structures of two instructions and their shared operands: equal pairs fuse to equal fusions.
    Results for one pair of instructions are cached here for all equal pairs."""

    producer: Summary
    consumer: Summary
    slot: int  # The first slot of the producer among the consumer's operands
    shared: Sequence[int | None]
    """For each operand of the producer the slot where the consumer reads it, or None; empty if none."""
    launch: Launch | None
    estimates: dict[bool, Estimate] | None  # Full estimates, by whether a read crosses the grain of memory
    fused: dict[FusionConfig | None, Summary] | None  # The summary of the fused pair, by the fusion's config
    _roots: Sequence[Root] | None

    @property
    def roots(self) -> Sequence[Root]:
        roots = self._roots
        if roots is None:
            b, slot, inside = self.consumer, self.slot, self.producer.roots[0]
            clean = b.clean[slot]
            roots = self._roots = [fuse_root(root, clean, slot, inside) for root in b.roots]
        return roots

    @property
    def merged_ir_size(self) -> int:
        """Instructions emitted, copies counted; new blocks double them (`ProducerConsumerMergedTooLarge`)."""
        a = self.producer
        b = self.consumer
        copies = b.parameter_ir_size[self.slot]
        size = a.ir_size * copies
        total = size + b.ir_size
        if a.splits or b.splits:
            return int(total) << min(int(copies * a.splits + b.splits), _MOST_SPLITS)
        return int(total) if total < EXACT else int(fp32(fp32(size) + b.ir_size))

    @property
    def operands(self) -> list[ShapeFacts]:
        """The arrays that the fused kernel reads."""
        slots = self.slots
        read = [o for k, o in enumerate(self.consumer.operands) if k not in slots]
        return read + [o for k, o in enumerate(self.producer.operands) if k not in self.producer.skipped]

    @property
    def features(self) -> int:
        return self.producer.features | self.consumer.features

    @property
    def minor_of_transpose(self) -> int:
        return min(self.producer.minor_of_transpose, self.consumer.minor_of_transpose)

    @property
    def slots(self) -> list[int]:
        """All slots of the consumer that read the producer."""
        first_slots = self.consumer.first_slots
        return [k for k, first in enumerate(first_slots) if first == self.slot] or [self.slot]


class PairTable(Struct, eq=False):
    _pairs: dict[tuple[Any, ...], SummaryPair] = {}

    def find(
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
                # The first slot that reads one of several results of a finished kernel.
                elements = [k for k, o in enumerate(operands) if o.is_get_tuple_element]
                slot = next(k for k in elements if operands[k].operand is producer)
            incoming = producer.operands
            for operand in incoming:
                # What only the producer uses the consumer does not; most pairs share nothing.
                if operand.user_count > 1 and operand in operands:
                    shared = tuple([operands.index(o) if o in operands else None for o in incoming])
                    break
        key = (first.number, second.number, slot, shared)
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = SummaryPair()
            pair.producer, pair.consumer, pair.slot, pair.shared = first, second, slot, shared
            pair.launch = pair._roots = pair.fused = pair.estimates = None
        return pair


class CacheEntry(Struct, eq=False):
    """Cached entries of one instruction (`GpuPerformanceModelCache`), and whether it may be fused."""

    run: Estimate | None = None
    times: dict[Instruction, Estimate] = {}  # Times with it fused into each of its users
    answers: dict[Instruction, Any] = {}
    """Fusibility with each user: the structure if allowed, otherwise the refusal."""


class EstimateCache(dict[Instruction, CacheEntry]):
    """Cached entries by instruction, created on demand."""

    def __missing__(self, instruction: Instruction) -> CacheEntry:
        entry = self[instruction] = CacheEntry()
        return entry

    def copy(self) -> "EstimateCache":
        new = EstimateCache()
        for instruction, source in self.items():
            entry = new[instruction]
            entry.run, entry.times, entry.answers = source.run, dict(source.times), dict(source.answers)
        return new
