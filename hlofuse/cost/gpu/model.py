"""Run times of instructions and of producer-consumer pairs. Mirrors `GpuPerformanceModel`
(`xla/service/gpu/model/gpu_performance_model.cc`) with its cache. Nothing here walks a fused computation:
a pair is known by the summaries of its parts (`summary`), and by the operands that they share (`pair`)."""

from collections.abc import Callable, Iterable

from hlofuse.ir.graph import Instruction, InstructionSequence
from hlofuse.ir.record import replace
from hlofuse.releases import Release
from .backend_config import fusion_config
from .device import DeviceDescription
from .estimate import Estimate, OperandRead, chain_end
from .launch import FusionAnalysis, Launch
from .shapes import ShapeFacts
from .summary import EstimateCache, Summary, SummaryPair
from .summary_table import SharedTables
from .ticks import INFINITE
from .timing import Timing, in_step, pair_reads, time_of, time_of_pair


class KernelModel:
    """The run times of one module's instructions on one device. Estimates are kept by instruction until
    `invalidate`. A pass that fuses calls `pair` before it changes the graph and `made` when the fusion is
    complete, backend config included; a fusion it does not announce is analysed again."""

    def __init__(
        self,
        device: DeviceDescription,
        release: Release,
        tiled: Callable[[Instruction], Estimate] | None = None,
        shared: SharedTables | None = None,
    ) -> None:
        """`tiled` estimates generic Triton fusions; without it they count as if emitted otherwise. `shared`
        holds results of models of this class, and receives those of this one."""
        self.device = device
        self.release = release
        self.timing = Timing(device, release)
        tables = (shared or SharedTables()).tables(type(self).__name__, device, release)
        self.tables = tables
        self.atoms = tables.atoms
        self.summaries = tables.summaries
        self._find_pair = tables.pairs.find
        self._launcher = tables.launcher
        self._tiled = tiled
        self._summary_of = dict[Instruction, Summary]()
        self._structure_of = dict[Instruction, SummaryPair]()
        self.cache = EstimateCache()  # Estimates by instruction until `invalidate`

    def run_time(self, instruction: Instruction) -> Estimate:
        """`EstimateRunTimeForInstruction`."""
        cache = self.cache[instruction]
        cached = cache.run
        if cached is None:
            cached = cache.run = self._run(instruction)
        return cached

    def pair_time(
        self, producer: Instruction, consumer: Instruction, pair: SummaryPair | None = None
    ) -> Estimate:
        """The consumer with the producer fused in (`EstimateRunTimeForFusion`); `pair`: the cached one."""
        times = self.cache[producer].times
        cached = times.get(consumer)
        if cached is None:
            pair = pair or self.pair(producer, consumer)
            cached = times[consumer] = self._run_pair(producer, consumer, pair)
        return cached

    def times(self, producer: Instruction, users: InstructionSequence) -> tuple[int, int]:
        """Ticks of all users with the producer, fusible into each, fused, and of it and them unfused."""
        cache = self.cache
        times = cache[producer].times
        answers = cache[producer].answers
        for user in users:
            if user not in times:
                self.pair_time(producer, user, answers.get(user))
        # There may be thousands, and nearly all are known.
        alone = [(cache[user].run or self.run_time(user)).ticks for user in users]
        return sum([times[user].ticks for user in users]), self.run_time(producer).ticks + sum(alone)

    def cached_times(
        self, producers: Iterable[Instruction], users: InstructionSequence
    ) -> dict[Instruction, tuple[int, int]]:
        """`times` for each producer, over those users whose pair time is cached."""
        cache, found = self.cache, {}
        for producer in producers:
            own = cache[producer]
            times = own.times
            fused = 0
            unfused = (own.run or self.run_time(producer)).ticks
            for user in users:
                if (together := times.get(user)) is not None:
                    fused += together.ticks
                    unfused += (cache[user].run or self.run_time(user)).ticks
            found[producer] = fused, unfused
        return found

    def multi_output_times(self, producer: Instruction, consumer: Instruction) -> tuple[int, int]:
        """Ticks of one kernel for both results and of two kernels, launches included."""
        launch, first, both = (
            self.device.launch_ticks,
            self.run_time(producer),
            self.pair_time(producer, consumer),
        )
        memory = both.memory + first.write  # the producer's result is also written
        fused = both.ticks if both.is_infinite else self.timing.combine(both.compute, memory)
        return launch + fused, 2 * launch + first.ticks + self.run_time(consumer).ticks

    def cached_pair_time(self, producer: Instruction, consumer: Instruction) -> Estimate | None:
        """The pair's cached time, or None (`GpuPerformanceModelCache::Get`)."""
        return self.cache[producer].times.get(consumer)

    def invalidate(self, instruction: Instruction) -> None:
        """Drop its run time and current pairs (`GpuPerformanceModelCache::Invalidate`)."""
        cache = self.cache
        if (own := cache.get(instruction)) is not None:
            own.run = None
            own.times.clear()
            own.answers.clear()
        for operand in instruction.operands:
            if operand.is_get_tuple_element:
                operand = operand.operand
            if (of_operand := cache.get(operand)) is not None:
                of_operand.times.pop(instruction, None)
                of_operand.answers.pop(instruction, None)

    def launch(self, instruction: Instruction) -> Launch:
        """Emitter kind and launch dimensions of a single instruction."""
        return self._launcher.launch(instruction, self.summary(instruction))

    def kernel(self, instruction: Instruction) -> FusionAnalysis:
        """The facts that decide its emitter."""
        return self._launcher.kernel(instruction, self.summary(instruction))

    def pair_launch(
        self, producer: Instruction, consumer: Instruction, pair: SummaryPair | None = None
    ) -> Launch:
        """`launch` for the producer fused into the consumer."""
        pair = pair or self.pair(producer, consumer)
        return pair.launch or self._launcher.pair_launch(producer, consumer, pair)

    def summary(self, instruction: Instruction) -> Summary:
        cached = self._summary_of.get(instruction)
        if cached is None:
            pair = self._structure_of.get(instruction)
            if pair is None:
                cached = self.summaries.find(instruction)
            else:
                cached = self.summaries.find_fused(instruction, pair)
            self._summary_of[instruction] = cached
        return cached

    def pair(self, producer: Instruction, consumer: Instruction) -> SummaryPair:
        """The structure of the two, with their shared operands."""
        cached = self._summary_of
        first = cached.get(producer) or self.summary(producer)
        return self._find_pair(producer, first, consumer, cached.get(consumer) or self.summary(consumer))

    def add_fusion(self, fusion: Instruction, pair: SummaryPair) -> None:
        """Register that `fusion` was created or grown from such a pair; its config is final."""
        cached = None if pair.fused is None else pair.fused.get(fusion_config(fusion))
        self._structure_of[fusion] = pair
        if cached is not None:
            self._summary_of[fusion] = cached
        else:
            self._summary_of.pop(fusion, None)

    def changed(self, instruction: Instruction) -> None:
        """Register that the instruction's structure or config changed in another way."""
        self._summary_of.pop(instruction, None)
        self._structure_of.pop(instruction, None)
        self.summaries.forget(instruction)

    def forget(self, instruction: Instruction) -> None:
        self.invalidate(instruction)
        self.changed(instruction)

    def _run(self, instruction: Instruction) -> Estimate:
        summary = self._summary_of.get(instruction) or self.summary(instruction)
        if summary.is_triton and self._tiled is not None:
            return self._tiled(instruction)
        bad = summary.bad_transpose and _reads_across(instruction, summary)
        cached = summary.estimates[bad]
        if cached is None:
            launch = self._launcher.launch(instruction, summary)
            coalesced = not bad or launch.kind == "transpose"
            cached = summary.estimates[bad] = time_of(self.timing, summary, launch, coalesced)
        return cached

    def _run_pair(
        self,
        producer: Instruction,
        consumer: Instruction,
        pair: SummaryPair,
    ) -> Estimate:
        first, second = self.run_time(producer), self.run_time(consumer)
        a = pair.producer
        b = pair.consumer
        bad = (a.bad_transpose and _reads_across(producer, a)) or (
            b.bad_transpose and _reads_across(consumer, b)
        )
        if pair.estimates is None:
            pair.estimates = {}
        cached = pair.estimates.get(bad)
        if cached is None:
            if first.ticks >= INFINITE or second.ticks >= INFINITE:
                return replace(first, ticks=INFINITE)
            launch = self._launcher.pair_launch(producer, consumer, pair)
            coalesced = (not bad or launch.kind == "transpose") and in_step(pair, launch)
            cached = time_of_pair(self.timing, pair, first, second, launch, coalesced)
            pair.estimates[bad] = cached
        return cached


def _reads_across(instruction: Instruction, summary: Summary) -> bool:
    """True if it reads against the memory layout (the first half of `IsReadCoalescedHeuristic`)."""
    return summary.is_fusion or chain_end(instruction.operand).opcode not in ("broadcast", "iota")


def operand_reads(model: KernelModel, instruction: Instruction) -> list[OperandRead]:
    """The reads of a single instruction; not for generic Triton fusions, which read by tiles."""
    estimate, summary = model.run_time(instruction), model.summary(instruction)
    return [
        _operand_read(model, estimate, operand, facts, total)
        for operand, facts, total in zip(
            instruction.operands, summary.operands, summary.operand_bytes, strict=True
        )
    ]


def pair_operand_reads(model: KernelModel, producer: Instruction, consumer: Instruction) -> list[OperandRead]:
    """The reads of the consumer with the producer fused in: its own operands, then the producer's."""
    estimate, pair = model.pair_time(producer, consumer), model.pair(producer, consumer)
    outer, inner, each = pair_reads(pair)
    reads = [(consumer.operands[k], pair.consumer.operands[k]) for k in outer]
    reads += [(producer.operands[k], pair.producer.operands[k]) for k in inner]
    return [
        _operand_read(model, estimate, operand, facts, read)
        for (operand, facts), read in zip(reads, each, strict=True)
    ]


def _operand_read(
    model: KernelModel, estimate: Estimate, operand: Instruction, facts: ShapeFacts, total: int
) -> OperandRead:
    rate = 1.0 if estimate.coalesced else model.timing.uncoalesced_rate(facts.element_bytes)
    net = min(facts.size, total)
    ticks = model.timing.read_at_rate(net, total, rate, estimate.launch.blocks)
    return OperandRead(operand, facts.size, total, ticks, rate)
