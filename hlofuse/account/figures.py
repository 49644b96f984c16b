"""The figures that reports quote: plain data, microseconds and bytes."""

from dataclasses import dataclass

from hlofuse.account.flips import Flip
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.ticks import TICKS_PER_MICROSECOND
from hlofuse.cost.tiling.tiling import Tiling


def us(ticks: int) -> float:
    """Microseconds, not rounded to single precision: sums of these are shown, never compared with XLA's."""
    return ticks / TICKS_PER_MICROSECOND


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The estimate of one kernel, launch not included."""

    us: float
    us_memory: float
    us_compute: float
    bytes_read: int
    bytes_written: int
    flops: int
    emitter: str
    blocks: int
    """0 for a custom kernel: how it is launched is its own affair."""
    threads: int
    coalesced: bool
    tile_sizes: tuple[tuple[int, ...], ...] = ()
    """Of each output, for what Triton emits."""
    tilings: int = 0
    """How many tilings there were to choose from; 0 where there was no choice."""
    us_floor: float = 0.0
    """What no machine is below, where that is more than `us`; else 0."""

    @property
    def bound_by(self) -> str:
        """`memory` or `compute`, whichever takes longer."""
        return "compute" if self.us_compute > self.us_memory else "memory"


def kernel_time(estimate: Estimate, tiling: Tiling | None = None) -> KernelTime | None:
    """None where the model has no figure (`absl::InfiniteDuration`); `tiling` is the one it is of."""
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
        tiling.tile_sizes if tiling is not None else (),
        tiling.candidates if tiling is not None and tiling.candidates > 1 else 0,
    )


@dataclass(frozen=True, slots=True)
class StepCost:
    """One producer going into one of its consumers, by the estimates of that moment."""

    producer: KernelTime
    consumer: KernelTime
    fused: KernelTime
    consumers: int
    """Kernels the producer goes into at this step; its own time and launch are saved once for all."""
    leaves: bool
    """The producer is no kernel any more; else bitcasts still need it and nothing of its own is saved."""
    us_launch: float = 1.0
    """What launching a kernel takes."""

    @property
    def kernels(self) -> tuple[tuple[str, KernelTime], ...]:
        """The three with what they are called."""
        return ("producer", self.producer), ("consumer", self.consumer), ("fused", self.fused)

    @property
    def us_saved(self) -> float:
        """This consumer's part of the step's priority."""
        own = (self.us_launch + self.producer.us) / self.consumers if self.leaves else 0.0
        return own + self.consumer.us - self.fused.us

    @property
    def bytes_less(self) -> int:
        """Traffic that goes away, the producer's own in equal parts."""
        own = (self.producer.bytes_read + self.producer.bytes_written) // self.consumers if self.leaves else 0
        consumer = self.consumer.bytes_read + self.consumer.bytes_written
        return own + consumer - self.fused.bytes_read - self.fused.bytes_written

    @property
    def us_compute_more(self) -> float:
        """Compute that is added, the producer's own taken off in equal parts."""
        own = self.producer.us_compute / self.consumers if self.leaves else 0.0
        return self.fused.us_compute - self.consumer.us_compute - own

    @property
    def evaluations(self) -> float:
        """How often the consumer evaluates each of the producer's elements."""
        if self.producer.flops <= 0:
            return 1.0
        return (self.fused.flops - self.consumer.flops) / self.producer.flops


@dataclass(frozen=True, slots=True)
class ReadTerm:
    """How one operand of a kernel is read."""

    operand: str
    shape: str
    size: int
    """Bytes of the buffer."""
    read: int
    """Bytes read; what goes beyond `size` is read again."""
    us: float
    share: float = 1.0
    """Of the bandwidth, what this way of reading attains."""


@dataclass(frozen=True, slots=True)
class PairDetail:
    """A pair in full: the sums XLA compares, and what the fused kernel reads."""

    cost: StepCost
    us_unfused: float
    us_fused: float
    """Launches included, over all users of the producer."""
    users: int
    consumer_reads: tuple[ReadTerm, ...]
    fused_reads: tuple[ReadTerm, ...]
    flips: tuple[Flip, ...] = ()
    """Numbers of the device that would turn the decision, the nearest first."""
    notes: tuple[str, ...] = ()

    @property
    def us_saved(self) -> float:
        """What the queue sorts by."""
        return self.us_unfused - self.us_fused
