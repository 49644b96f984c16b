"""Figures that reports quote: plain data, microseconds and bytes."""

from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.ticks import TICKS_PER_MICROSECOND
from hlofuse.cost.tiling.constraints import Tiling
from hlofuse.ir.record import Record, Strings
from .flips import Flip


def us(ticks: int) -> float:
    """Microseconds, not rounded to single precision: sums are shown, never compared with XLA's."""
    return ticks / TICKS_PER_MICROSECOND


class KernelTime(Record):
    """The estimate of one kernel, without its launch."""

    us: float
    us_memory: float
    us_compute: float
    bytes_read: int
    bytes_written: int
    flops: int
    emitter: str
    blocks: int  # 0 for a custom kernel, whose launch is unknown
    threads: int
    coalesced: bool
    tile_sizes: tuple[tuple[int, ...], ...] = ()  # Tile sizes of each output of a Triton fusion
    tilings: int = 0  # The number of tilings compared; 0 without a choice
    us_floor: float = 0.0  # The lower bound for any machine, where it exceeds `us`; else 0

    @property
    def bound_by(self) -> str:
        """`memory` or `compute`, whichever takes longer."""
        return "compute" if self.us_compute > self.us_memory else "memory"


def kernel_time(estimate: Estimate, tiling: Tiling | None = None) -> KernelTime | None:
    """None without an estimate (`absl::InfiniteDuration`); `tiling` is the tiling of the estimate."""
    if estimate.is_infinite:
        return None
    return KernelTime(
        us(estimate.ticks),
        us(estimate.memory),
        us(estimate.compute),
        estimate.bytes_read,
        estimate.bytes_written,
        estimate.flops,
        estimate.launch.kind,
        estimate.launch.blocks,
        estimate.launch.threads,
        estimate.coalesced,
        tiling.config.tile_sizes if tiling is not None else (),
        tiling.candidates if tiling is not None and tiling.candidates > 1 else 0,
    )


class StepCost(Record):
    """Fusion of a producer into one of its consumers, by the estimates at that moment."""

    producer: KernelTime
    consumer: KernelTime
    fused: KernelTime
    consumers: int  # Kernels that the producer is fused into at this step; its time and launch are saved once
    leaves: bool  # True if no kernel of the producer remains; False if bitcasts need it and it saves nothing
    us_launch: float = 1.0

    @property
    def kernels(self) -> tuple[tuple[str, KernelTime], ...]:
        return ("producer", self.producer), ("consumer", self.consumer), ("fused", self.fused)

    @property
    def us_saved(self) -> float:
        """This consumer's part of the step's priority."""
        own = (self.us_launch + self.producer.us) / self.consumers if self.leaves else 0.0
        return own + self.consumer.us - self.fused.us

    @property
    def bytes_less(self) -> int:
        """Saved traffic in bytes, the producer's own in equal parts."""
        own = (self.producer.bytes_read + self.producer.bytes_written) // self.consumers if self.leaves else 0
        consumer = self.consumer.bytes_read + self.consumer.bytes_written
        return own + consumer - self.fused.bytes_read - self.fused.bytes_written

    @property
    def us_compute_more(self) -> float:
        """Added compute time, minus equal parts of the producer's own."""
        own = self.producer.us_compute / self.consumers if self.leaves else 0.0
        return self.fused.us_compute - self.consumer.us_compute - own

    @property
    def evaluations(self) -> float:
        """The evaluations of each of the producer's elements by the consumer."""
        if self.producer.flops <= 0:
            return 1.0
        return (self.fused.flops - self.consumer.flops) / self.producer.flops


class ReadTerm(Record):
    operand: str
    shape: str
    size: int
    read: int  # Bytes read; bytes beyond `size` are read again
    us: float
    share: float = 1.0  # The attained share of the bandwidth


class PairDetail(Record):
    """A pair in full: the sums that XLA compares, and the reads of the fused kernel."""

    cost: StepCost
    us_unfused: float
    us_fused: float  # Microseconds over all users of the producer, launches included
    users: int
    consumer_reads: tuple[ReadTerm, ...]
    fused_reads: tuple[ReadTerm, ...]
    flips: tuple[Flip, ...] = ()
    """Changes of device numbers that would change the decision, the nearest first."""
    notes: Strings = ()

    @property
    def us_saved(self) -> float:
        """The priority in the queue."""
        return self.us_unfused - self.us_fused
