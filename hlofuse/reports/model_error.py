"""XLA's estimate of each kernel against its measured time: data, terminal, and JSON (docs/profiles.md)."""

from hlofuse.account import Account, Launched
from hlofuse.account.measured import NO_MEASURED_TIME, Measured
from hlofuse.cost.tpu import estimated_cycles
from hlofuse.format import bytes_text, fields, plural, printable, us_text
from hlofuse.format.terminal import Page, print_lines, print_rows
from hlofuse.inputs.profile import MeasuredTime
from hlofuse.ir import HlofuseError, Json, Record
from hlofuse.reports.common.model import measured_json, place_json
from .common.facts import place_of
from .common.model import Place
from .common.phrases import times_text
from .common.profile import profile_json, profile_lines

_CLOSE_RATIO = 1.25
_LARGE_SHARE = 0.01  # the part of all bytes from which a kernel shows what bandwidth the machine reaches


class KernelError(Record):
    place: Place
    measured: MeasuredTime
    measured_us: float  # The time of all its launches in one run of the program
    estimate_us: float  # The same by XLA's model, with its launch overhead; a lower bound where `is_floor`
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


class ModelError(Record):
    module: str
    device: str | None
    measured: Measured
    kernels: tuple[KernelError, ...]  # Worst first: by how far the estimate is off in one run
    backend: str
    bandwidth: float | None = None  # Without a model: bytes per second of the best kernel, in its place

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
            estimate = row.busy_us * launches
        else:
            estimate = row.cost.bytes_accessed * launches / bandwidth * 1e6 if bandwidth else 0.0
        x = row.instruction
        place = place_of(x, account.module)
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


def print_model_error(e: ModelError, console: Page) -> None:
    """The sums, then kernel by kernel."""
    console.print(_summary(e), style="bold")
    print_lines(console, profile_lines(e.measured), 0)
    shown = console.first(e.kernels)
    console.print()
    estimate = "XLA's model" if e.bandwidth is None else "at that bandwidth"
    columns = [("measured", "right"), (estimate, "right"), ("error", "right"), ("kernel", "name")]
    rows = [_row(k, e) for k in shown]
    if any(k.cycles is not None for k in shown):
        columns.insert(3, ("XLA's cycles per µs", "right"))
        for k, row in zip(shown, rows, strict=True):
            row.insert(3, f"{k.cycles / k.measured_us:,.0f}" if k.cycles is not None else "")
    print_rows(console, [*columns, ("source line", "left")], rows, drop=(len(columns),))
    console.print_rest(e.kernels, 0)


def _summary(e: ModelError) -> str:
    if e.bandwidth is not None:
        total = sum(k.measured_us for k in e.kernels)
        bound = sum(k.estimate_us for k in e.kernels)
        why = "hlofuse has no numbers of this GPU (--device)"
        if e.backend != "gpu":
            why = f"XLA:{e.backend.upper()} has no time model" + (
                " that is public" if e.backend == "tpu" else ""
            )
        return (
            f"{why}. At {bytes_text(e.bandwidth)}/s, which the best kernel here reaches,"
            f" {plural(len(e.kernels), 'kernel')} would take {us_text(bound)} instead of {us_text(total)}."
        )
    if not e.modelled:
        return "XLA's model covers none of the kernels measured."
    estimate = sum(k.estimate_us for k in e.modelled)
    measured = sum(k.measured_us for k in e.modelled)
    close = sum(k.is_close for k in e.modelled)
    line = (
        f"XLA's model: {us_text(estimate)} for {plural(len(e.modelled), 'kernel')} that took"
        f" {us_text(measured)} ({_error(estimate / measured)}); {close} of {len(e.modelled)} within 25%"
    )
    floors = len(e.kernels) - len(e.modelled)
    return line + (f"; no estimate of {floors} more, only a lower bound" if floors else "")


def _row(k: KernelError, e: ModelError) -> list[str]:
    name = printable(k.place.label) + times_text(k.runs)
    bound = "≥ " if k.is_floor and e.bandwidth is None else ""
    error = _error(k.ratio) if not bound else "above" if k.off_us else ""
    return [us_text(k.measured_us), bound + us_text(k.estimate_us), error, name, printable(k.place.where)]


def _error(ratio: float) -> str:
    """The error of an estimate: `−47%`, or `3.1×` from twice as long on."""
    if ratio >= 2:
        return f"{ratio:.1f}×"
    change = round(100 * (ratio - 1))
    return f"{'−' if change < 0 else '+'}{abs(change)}%" if change else "±0%"


def model_error_json(e: ModelError) -> Json:
    return {
        "schema": "hlofuse.model-error/3",
        **fields(e, "module device"),
        **profile_json(e.measured),
        "bandwidth": e.bandwidth,
        "modelled": {
            "kernels": len(e.modelled),
            "close": sum(k.is_close for k in e.modelled),
        },
        "kernels": [
            {
                **place_json(k.place),
                **fields(k, "runs measured_run_us=measured_us~ estimate_us~ floor=is_floor ratio~ off_us~"),
                **({"cycles": k.cycles} if k.cycles is not None else {}),
                **measured_json(k.measured),
            }
            for k in e.kernels
        ],
    }
