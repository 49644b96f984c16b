"""Times that decide on merging a kernel into its consumers, as jaxlib 0.4.35 estimates them. Mirrors
`GpuPerformanceModel::EstimateRunTimes` (`xla/service/gpu/model/gpu_performance_model.cc` of that release),
with `EstimateUnfusedExecTime` and `EstimateFusedExecTime`. Later releases estimate pairs (`model`)."""

from typing import NamedTuple

from hlofuse.ir.graph import Instruction, InstructionSequence
from hlofuse.releases import Release
from .device import DeviceDescription
from .model import KernelModel
from .summary_table import SharedTables
from .ticks import fp32, seconds, single_half_away
from .timing import Timing


class ConsumerTimes(NamedTuple):
    read_unfused: int  # Ticks to read the producer's result
    compute: int  # Ticks to compute the needed part of the producer's result in the consumer's kernel
    read_fused: int  # Ticks to read the producer's operands there


class MergeTimes(NamedTuple):
    """Ticks with and without merging, and their parts (`RunTimes`)."""

    fused: int
    unfused: int
    consumers: tuple[ConsumerTimes, ...]


class _Timing(Timing):
    """Timing of 0.4.35: compute and memory overlap wholly."""

    def combine(self, compute: int, memory: int) -> int:
        return max(compute, memory)

    def read_from_caches(self, net: int, total: int, blocks: int) -> int:
        """`ReadTime`: the whole at the rate of the cache that holds `net` bytes."""
        rate = min(self.cache_rate(net), fp32(fp32(blocks) * self._per_block))
        return seconds(fp32(fp32(total) / rate))


class MergingModel(KernelModel):
    """The kernel model of jaxlib 0.4.35."""

    def __init__(
        self, device: DeviceDescription, release: Release, shared: SharedTables | None = None
    ) -> None:
        super().__init__(device, release, shared=shared)
        self.timing = self._clock = _Timing(device, release)

    def merge_times(
        self, producer: Instruction, consumers: InstructionSequence, *, multi_output: bool = False
    ) -> MergeTimes:
        """`EstimateRunTimes`; with `multi_output` the producer's result is also written."""
        first = self.run_time(producer)
        written = first.bytes_written
        flops = first.flops
        launch_ticks = self.device.launch_ticks
        unfused = launch_ticks * (len(consumers) + 1) + first.ticks
        fused = launch_ticks * len(consumers)
        terms = []
        for consumer in consumers:
            slot = consumer.operands.index(producer)
            share = self.summary(consumer).utilization[slot]
            total = single_half_away(fp32(written) * share)
            alone = self._clock.read_from_caches(min(written, total), total, self.launch(consumer).blocks)
            launch = self.pair_launch(producer, consumer)
            compute = self.timing.compute(int(fp32(fp32(flops) * share)), launch.blocks, launch.threads)
            read = self._read_operands_in(producer, consumer, slot, launch.blocks)
            terms.append(ConsumerTimes(alone, compute, read))
            unfused += alone
            fused += self.timing.combine(compute, read)
        if multi_output:
            fused += first.write
        return MergeTimes(fused, unfused, tuple(terms))

    def multi_output_times(self, producer: Instruction, consumer: Instruction) -> tuple[int, int]:
        times = self.merge_times(producer, [consumer], multi_output=True)
        return times.fused, times.unfused

    def _read_operands_in(
        self,
        producer: Instruction,
        consumer: Instruction,
        slot: int,
        blocks: int,
    ) -> int:
        """`ProducerInputAccessTime`."""
        a, b = self.summary(producer), self.summary(consumer)
        share = b.utilization[slot]
        ticks = 0
        for k, operand in enumerate(producer.operands):
            size = fp32(a.operand_bytes[k])
            net = single_half_away(size / max(a.utilization[k], 1.0))
            common = 0.0
            in_step = a.elementwise or (a.is_fusion and a.common_with_root(k) == 1.0)
            if in_step and operand in consumer.operands:
                both = consumer.operands.index(operand)
                if b.is_fusion:
                    common = b.common_utilization(both, slot)
                elif b.elementwise:
                    common = 1.0
            total = int(fp32(size * fp32(share - common)))
            ticks += self._clock.read_from_caches(net, total, blocks)
        return ticks


def kernel_model(
    device: DeviceDescription, release: Release, tables: SharedTables | None = None
) -> KernelModel:
    kind = KernelModel if release.mlir_emitters else MergingModel
    return kind(device, release, shared=tables)
