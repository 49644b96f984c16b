"""XLA's estimate of each kernel against its measured time."""

from dataclasses import dataclass

from hlofuse.account import Account, Launched
from hlofuse.account.measured import NO_MEASURED_TIME, Measured
from hlofuse.cost.tpu import estimated_cycles
from hlofuse.inputs.profile import MeasuredTime
from hlofuse.ir.errors import HlofuseError
from hlofuse.reports.common.facts import place_of
from hlofuse.reports.common.model import Place

_CLOSE_RATIO = 1.25
_LARGE_SHARE = 0.01
"""The part of all bytes from which a kernel shows what bandwidth the machine reaches."""


@dataclass(frozen=True, slots=True)
class KernelError:
    place: Place
    measured: MeasuredTime
    measured_us: float
    """The time of all its launches in one run of the program."""
    estimate_us: float
    """The same by XLA's model, with its launch overhead; a lower bound where `is_floor`."""
    is_floor: bool
    runs: int
    cycles: float | None = None
    """The estimate that XLA:TPU writes into its text, of all launches in one run; its clock is not public."""

    @property
    def ratio(self) -> float:
        return self.estimate_us / self.measured_us if self.measured_us else 1.0

    @property
    def off_us(self) -> float:
        """The error of the estimate in one run; for a lower bound only what exceeds the measurement."""
        off = self.estimate_us - self.measured_us
        return max(off, 0.0) if self.is_floor else off

    @property
    def is_close(self) -> bool:
        return 1 / _CLOSE_RATIO <= self.ratio <= _CLOSE_RATIO


@dataclass(frozen=True, slots=True)
class ModelError:
    """A module's kernels, and what they come to."""

    module: str
    device: str | None
    measured: Measured
    kernels: tuple[KernelError, ...]
    """Worst first: by how far the estimate is off in one run."""
    backend: str
    bandwidth: float | None = None
    """Without a model: the bytes per second of the best kernel, which stand in for one."""

    @property
    def modelled(self) -> tuple[KernelError, ...]:
        return tuple(k for k in self.kernels if not k.is_floor)


def model_error(account: Account, device: str | None) -> ModelError:
    """HlofuseError for an account without a profile, or with none of its kernels in it."""
    measured = account.measured
    rows = [r for r in account.rows if r.measured is not None and r.measured_us]
    if measured is None or not rows:
        raise HlofuseError(NO_MEASURED_TIME)
    overhead = account.launch_overhead_us
    bandwidth = None if overhead is not None else _best_bandwidth(rows)
    found = []
    for row in rows:
        assert row.measured is not None
        assert row.measured_us is not None
        # As often as it was launched: the module need not tell how often a loop or a branch runs.
        launches = row.measured.calls / measured.runs
        if overhead is not None and row.us is not None:
            estimate = row.us * launches
        else:
            estimate = row.cost.bytes_accessed * launches / bandwidth * 1e6 if bandwidth else 0.0
        x = row.instruction
        place = place_of(x, account.module, x.name, x.name)
        is_floor = row.is_floor or overhead is None
        estimated = estimated_cycles(x)
        cycles = estimated * launches if estimated is not None else None
        found.append(KernelError(place, row.measured, row.measured_us, estimate, is_floor, row.runs, cycles))
    if overhead is None:
        found.sort(key=lambda k: k.estimate_us - k.measured_us)
    else:
        found.sort(key=lambda k: -abs(k.off_us))
    return ModelError(account.module.name, device, measured, tuple(found), account.backend, bandwidth)


def _best_bandwidth(rows: list[Launched]) -> float | None:
    """Bytes per second of the kernel that moves them fastest, of those that move many."""
    moved = [(r.cost.bytes_accessed * r.measured.calls, r.measured, r.kind) for r in rows if r.measured]
    least = _LARGE_SHARE * sum(total for total, *_ in moved)
    rates = [b / m.total_us * 1e6 for b, m, kind in moved if m.total_us and kind == "kernel" and b >= least]
    return max(rates, default=None) or None
