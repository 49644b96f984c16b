"""Run times of instructions and of producer-consumer pairs.

Mirrors `GpuPerformanceModel` (`xla/service/gpu/model/gpu_performance_model.cc`) with its cache.
Nothing here walks a fused computation: summaries (`summary`) hold what is needed, and a pair is
known by the summaries of its two parts and by which operands they share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from hlofuse.analysis.release import JAXLIB_0_11_1, Release
from hlofuse.cost.gpu import backend_config as config
from hlofuse.cost.gpu import llvm_launch
from hlofuse.cost.gpu.atoms import AtomTable
from hlofuse.cost.gpu.composing import compose, origins_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.heroes import Root, fuse_roots
from hlofuse.cost.gpu.in_place import can_update_in_place
from hlofuse.cost.gpu.launch import Kernel, Launch, launch_of, per_element
from hlofuse.cost.gpu.reduction_groups import reduction_groups
from hlofuse.cost.gpu.shapes import NO_BITS, ShapeTable
from hlofuse.cost.gpu.summary import Summary, SummaryTable, is_broadcast
from hlofuse.cost.gpu.ticks import INFINITE, fp32, half_away
from hlofuse.cost.gpu.timing import KERNEL_LAUNCH, Timing
from hlofuse.ir.instruction import Instruction

Key = tuple[Any, ...]
"""Numbers of two summaries, the slot of the producer among the consumer's operands, and for each of the
producer's operands the slot where the consumer reads it too, or None."""


class Estimate(NamedTuple):
    """A run time and what it is made of (`EstimateRunTimeData`). Times are ticks of 0.25 ns."""

    ticks: int
    """`exec_time`: compute and memory, overlapping."""
    flops: int
    bytes_read: int
    bytes_written: int
    read: int
    write: int
    compute: int
    launch: Launch
    coalesced: bool

    @property
    def is_infinite(self) -> bool:
        return self.ticks >= INFINITE

    @property
    def memory(self) -> int:
        """Ticks of reading and writing."""
        return self.read + self.write

    @property
    def bound_by(self) -> str:
        """`memory` or `compute`, whichever takes longer."""
        return "compute" if self.compute > self.memory else "memory"


class KernelModel:
    """The run times of one module's instructions on one device.

    Estimates are kept by instruction until `invalidate`. A pass that fuses calls `parts_key` before
    it changes the graph and `made` when the fusion is complete, backend config included; a fusion it
    does not announce is analysed anew.
    """

    def __init__(
        self,
        device: DeviceDescription,
        tiled: Callable[[Instruction], Estimate] | None = None,
        release: Release = JAXLIB_0_11_1,
    ) -> None:
        """`tiled` estimates generic Triton fusions; without it they count as if emitted otherwise."""
        self.device = device
        self.release = release
        self.timing = Timing(device)
        self._launch_of = launch_of if release.mlir_emitters else llvm_launch.launch_of
        self.shapes = ShapeTable()
        self.atoms = AtomTable(device, self.shapes, release)
        self.summaries = SummaryTable(self.shapes, self.atoms)
        self._tiled = tiled
        self._summary_of: dict[Instruction, Summary] = {}
        self._made_of: dict[Instruction, Key] = {}
        self._runs: dict[Instruction, Estimate] = {}
        self._pairs: dict[Instruction, dict[Instruction, Estimate]] = {}
        self._run_by_structure: dict[Hashable, Estimate] = {}
        self._pair_by_structure: dict[Key, Estimate] = {}
        self._launch_by_structure: dict[Hashable, Launch] = {}

    # ------------------------------------------------------------ what passes ask

    def run_time(self, instruction: Instruction) -> Estimate:
        """`EstimateRunTimeForInstruction`."""
        known = self._runs.get(instruction)
        if known is None:
            known = self._runs[instruction] = self._run(instruction)
        return known

    def pair_time(self, producer: Instruction, consumer: Instruction, key: Key | None = None) -> Estimate:
        """The consumer with the producer fused in (`EstimateRunTimeForFusion`).

        `key` is the pair's `parts_key`, for who has it already.
        """
        pairs = self._pairs.get(producer)
        if pairs is None:
            pairs = self._pairs[producer] = {}
        known = pairs.get(consumer)
        if known is None:
            known = pairs[consumer] = self._pair(producer, consumer, key)
        return known

    def multi_output_time(self, producer: Instruction, consumer: Instruction) -> Estimate:
        """The same where the producer's result is written too; not kept."""
        fused = self.pair_time(producer, consumer)
        if fused.is_infinite:
            return fused
        first = self.run_time(producer)
        write = fused.write + first.write
        return fused._replace(
            ticks=self.timing.combine(fused.compute, fused.read + write),
            write=write,
            bytes_written=fused.bytes_written + first.bytes_written,
        )

    def multi_output_times(self, producer: Instruction, consumer: Instruction) -> tuple[int, int]:
        """Ticks of one kernel for both results and of two kernels, launches included."""
        fused = KERNEL_LAUNCH + self.multi_output_time(producer, consumer).ticks
        return fused, 2 * KERNEL_LAUNCH + self.run_time(producer).ticks + self.run_time(consumer).ticks

    def set_pair_time(self, producer: Instruction, consumer: Instruction, estimate: Estimate) -> None:
        """Keep an estimate made elsewhere, as the Triton check does."""
        self._pairs.setdefault(producer, {})[consumer] = estimate

    def pairs_of(self, producer: Instruction) -> dict[Instruction, Estimate]:
        """The kept pair times with this producer (`GetAllConsumers`); empty if there are none."""
        return self._pairs.get(producer, {})

    def invalidate(self, instruction: Instruction) -> None:
        """Forget its run time and the pairs it is in now (`GpuPerformanceModelCache::Invalidate`)."""
        self._runs.pop(instruction, None)
        self._pairs.pop(instruction, None)
        self._summary_of.pop(instruction, None)
        pairs = self._pairs
        for operand in instruction.operands:
            if operand.opcode == "get-tuple-element":
                operand = operand.operands[0]
            consumers = pairs.get(operand)
            if consumers is not None:
                consumers.pop(instruction, None)

    def launch(self, instruction: Instruction) -> Launch:
        """Emitter kind and launch dimensions of an instruction on its own."""
        return self._launch(instruction, self.summary(instruction))

    def kernel(self, instruction: Instruction) -> Kernel:
        """What the choice of its emitter depends on."""
        return self._kernel(instruction, self.summary(instruction))

    def pair_launch(self, producer: Instruction, consumer: Instruction, key: Key | None = None) -> Launch:
        """The same for the producer fused into the consumer."""
        return self._launch_of_pair(producer, consumer, key or self.parts_key(producer, consumer))

    def merged_ir_size(self, producer: Instruction, consumer: Instruction) -> int:
        """Instructions emitted after fusing, copies counted (`ProducerConsumerMergedTooLarge`)."""
        second = self.summary(consumer)
        copies = second.parameter_ir_size[consumer.operands.index(producer)] if second.is_fusion else 1
        return int(fp32(fp32(self.summary(producer).ir_size * copies) + second.ir_size))

    # ------------------------------------------------------------ structure

    def summary(self, instruction: Instruction) -> Summary:
        """The figures of an instruction's structure."""
        known = self._summary_of.get(instruction)
        if known is None:
            key = self._made_of.get(instruction)
            known = (
                self.summaries.of(instruction) if key is None else self.summaries.of_parts(instruction, key)
            )
            self._summary_of[instruction] = known
        return known

    def parts_key(self, producer: Instruction, consumer: Instruction) -> Key:
        """What tells this pair's structure from others: equal keys fuse to equal fusions."""
        first, second = self.summary(producer), self.summary(consumer)
        operands = consumer.operands
        if len(operands) == 1:
            return (first.number, second.number, 0)
        if not producer.operands:
            return (first.number, second.number, operands.index(producer))
        slots: dict[Instruction, int] = {}
        for slot, operand in enumerate(operands):
            slots.setdefault(operand, slot)
        find = slots.get
        return (first.number, second.number, slots[producer], *[find(o) for o in producer.operands])

    def made(self, fusion: Instruction, key: Key, producer: Instruction | None = None) -> None:
        """`fusion` has come into being, or grown, from the parts of `key`; its config is final.

        With the producer, still in possession of its operands, a new structure's figures are put
        together from those of its parts.
        """
        self._summary_of.pop(fusion, None)
        self._made_of[fusion] = key
        if producer is None or self.summaries.has_parts(fusion, key):
            return
        first, second = self.summaries.numbered(key[0]), self.summaries.numbered(key[1])
        origins = origins_of(fusion, key, producer, first, second)
        if origins is not None:
            operands = [self.shapes.facts(o.shape) for o in fusion.operands]
            summary = compose(first, second, key[2], origins, operands)
            if summary is not None:
                self.summaries.add_composed(fusion, key, summary)

    def changed(self, instruction: Instruction) -> None:
        """The instruction's structure or config is another than before, in some way not announced."""
        self._summary_of.pop(instruction, None)
        self._made_of.pop(instruction, None)

    def forget(self, instruction: Instruction) -> None:
        """The instruction has been removed."""
        self.invalidate(instruction)
        self.changed(instruction)

    # ------------------------------------------------------------ one instruction

    def _run(self, instruction: Instruction) -> Estimate:
        summary = self.summary(instruction)
        if summary.is_triton and self._tiled is not None:
            return self._tiled(instruction)
        bad = summary.bad_transpose and self._reads_across(instruction, summary)
        key = (summary.number, bad)
        known = self._run_by_structure.get(key)
        if known is None:
            launch = self._launch(instruction, summary)
            coalesced = launch.kind == "transpose" or not bad
            known = self._run_by_structure[key] = self._estimate(summary, launch, coalesced)
        return known

    def _estimate(self, summary: Summary, launch: Launch, coalesced: bool) -> Estimate:
        read, _ = self._read_operands(summary, launch.blocks, coalesced)
        write = self.timing.write(summary.written)
        return self._total(summary.flops, summary.total_read, summary.written, read, write, launch, coalesced)

    def _total(
        self,
        flops: int,
        bytes_read: int,
        written: int,
        read: int,
        write: int,
        launch: Launch,
        coalesced: bool,
    ) -> Estimate:
        compute = self.timing.compute(flops, launch.blocks, launch.threads)
        ticks = self.timing.combine(compute, read + write)
        return Estimate(ticks, flops, bytes_read, written, read, write, compute, launch, coalesced)

    def _read_operands(self, summary: Summary, blocks: int, coalesced: bool) -> tuple[int, list[int]]:
        blocks = min(blocks, self.timing.saturating_blocks)
        known = summary.reads.get((blocks, coalesced))
        if known is None:
            time = self.timing.read
            each = [
                time(o.size, total, 0 if coalesced else o.element_bytes, blocks)
                for o, total in zip(summary.operands, summary.operand_bytes, strict=True)
            ]
            known = summary.reads[blocks, coalesced] = (sum(each), each)
        return known

    def _launch(self, instruction: Instruction, summary: Summary) -> Launch:
        known = self._launch_by_structure.get(summary.number)
        if known is None:
            known = None if summary.config is None else self._named_emitter(summary.config, summary)
        if known is None:
            known = self._launch_of(self.device, self._kernel(instruction, summary))
        self._launch_by_structure[summary.number] = known
        return known

    def _kernel(self, instruction: Instruction, summary: Summary) -> Kernel:
        return Kernel(
            summary.roots,
            summary.features,
            summary.minor_of_transpose,
            summary.input_bits,
            summary.storage_bits,
            lambda: self._in_place([instruction]),
            lambda: self._groups([instruction], summary.roots),
        )

    def _in_place(self, parts: Sequence[Instruction]) -> bool:
        return can_update_in_place(parts) if self.release.mlir_emitters else can_update_in_place(parts, 1)

    def _groups(self, parts: Sequence[Instruction], roots: Sequence[Root]) -> int:
        return reduction_groups(parts, roots, in_one_walk=not self.release.mlir_emitters)

    def _named_emitter(self, fusion: config.FusionConfig, summary: Summary) -> Launch | None:
        """The launch where the backend config names the emitter."""
        root = summary.roots[0].result
        if fusion.kind == config.CUSTOM:
            return per_element(root, "custom")
        if fusion.is_triton:
            if not fusion.tile_sizes:
                return per_element(root, "triton")
            blocks = 1
            for size, tile in zip(root.dimensions, fusion.tile_sizes[0], strict=False):
                blocks *= -(-size // tile)
            return Launch("triton", blocks, fusion.num_warps * self.device.threads_per_warp)
        return per_element(root, "cudnn") if fusion.kind == config.CUDNN else None

    def _reads_across(self, instruction: Instruction, summary: Summary) -> bool:
        """Does it read across the grain of memory (the first half of `IsReadCoalescedHeuristic`)?"""
        return summary.is_fusion or not is_broadcast(instruction.operands[0])

    # ------------------------------------------------------------ pairs

    def _pair(self, producer: Instruction, consumer: Instruction, key: Key | None) -> Estimate:
        if key is None:
            key = self.parts_key(producer, consumer)
        a, b = self.summary(producer), self.summary(consumer)
        bad = a.bad_transpose and self._reads_across(producer, a)
        bad = bad or (b.bad_transpose and self._reads_across(consumer, b))
        whole = (key, bad)
        known = self._pair_by_structure.get(whole)
        if known is None:
            first, second = self.run_time(producer), self.run_time(consumer)
            if first.ticks >= INFINITE or second.ticks >= INFINITE:
                return first._replace(ticks=INFINITE)
            launch = self._launch_of_pair(producer, consumer, key)
            coalesced = launch.kind == "transpose" or not bad
            if launch.kind == "reduction" and a.is_reduction and b.is_reduction:
                coalesced = False
            known = self._estimate_pair(a, b, key, first, second, launch, coalesced)
            self._pair_by_structure[whole] = known
        return known

    def _estimate_pair(
        self,
        a: Summary,
        b: Summary,
        key: Key,
        first: Estimate,
        second: Estimate,
        launch: Launch,
        coalesced: bool,
    ) -> Estimate:
        slot: int = key[2]
        shared: tuple[int | None, ...] = key[3:]
        share = b.utilization[slot]
        evaluated = share
        slots = _same_operand(b, slot)
        for other in slots[1:]:
            evaluated = fp32(evaluated + b.utilization[other])
        flops = int(fp32(fp32(fp32(first.flops) * evaluated) + fp32(second.flops)))

        blocks = min(launch.blocks, self.timing.saturating_blocks)
        time = self.timing.read
        # Start from all the consumer reads; what the producer changes is replaced.
        read, each = self._read_operands(b, blocks, coalesced)
        bytes_read = b.total_read
        for other in slots:
            read -= each[other]
            bytes_read -= b.operand_bytes[other]
        first_slots, skipped, read_by_b = a.first_slots, a.skipped, b.operand_bytes
        in_step = b.is_fusion or b.elementwise
        uses = a.parameter_uses if a.is_fusion else ()
        for k, (operand, total) in enumerate(zip(a.operands, a.operand_bytes, strict=True)):
            if first_slots and first_slots[k] != k:
                continue
            both = shared[k] if shared else None
            if share != 1.0:  # byte counts are single precision already
                total = half_away(fp32(total * share))
            if both is None:
                if k not in skipped:
                    read += time(operand.size, total, 0 if coalesced else operand.element_bytes, blocks)
                    bytes_read += total
                continue
            total += read_by_b[both]
            if in_step and (a.elementwise or (uses and 0 in uses[k])):
                # Where both read the operand in step, it is read once (`GetCommonUtilization`).
                common = b.common_utilization(both, slot) if b.is_fusion else 1.0
                if common:
                    total -= half_away(fp32(operand.size_fp32 * common))
            if total == read_by_b[both]:
                continue
            ticks = time(operand.size, total, 0 if coalesced else operand.element_bytes, blocks)
            for other in _same_operand(b, both) if b.first_slots else (both,):
                read += ticks - each[other]
                bytes_read += total - read_by_b[other]
        return self._total(flops, bytes_read, second.bytes_written, read, second.write, launch, coalesced)

    def _launch_of_pair(self, producer: Instruction, consumer: Instruction, key: Key) -> Launch:
        known = self._launch_by_structure.get(key)
        if known is not None:
            return known
        a, b = self.summary(producer), self.summary(consumer)
        fusion = a.config if b.config is None else b.config
        named = None if fusion is None else self._named_emitter(fusion, b)
        if named is not None:
            self._launch_by_structure[key] = named
            return named
        slots = _same_operand(b, key[2])
        roots = fuse_roots(b.roots, b.clean, slots, a.roots[0])
        remaining = list(b.bits)
        for other in reversed(slots):
            del remaining[other]
        remaining += [bits for k, bits in enumerate(a.bits) if k not in a.skipped] if a.skipped else a.bits
        storage = 8
        if self.device.is_blackwell:  # nobody else asks
            read = [o for k, o in enumerate(b.operands) if k not in slots]
            read += [o for k, o in enumerate(a.operands) if k not in a.skipped]
            storage = max([o.storage_bits for o in read], default=8)
        kernel = Kernel(
            roots,
            a.features | b.features,
            min(a.minor_of_transpose, b.minor_of_transpose),
            min(remaining, default=NO_BITS),
            storage,
            lambda: self._in_place([producer, consumer]),
            lambda: self._groups([producer, consumer], roots),
        )
        known = self._launch_by_structure[key] = self._launch_of(self.device, kernel)
        return known


def _same_operand(summary: Summary, slot: int) -> list[int]:
    """All slots with the operand whose first slot is `slot`."""
    if not summary.first_slots:
        return [slot]
    return [k for k, first in enumerate(summary.first_slots) if first == slot]
