"""`model-error` for the terminal."""

from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import print_rows
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.reports.common.phrases import times_text
from hlofuse.reports.common.profile import profile_lines
from hlofuse.reports.model_error.model import KernelError, ModelError


def print_model_error(e: ModelError, console: Console, limit: int) -> None:
    """The sums, then kernel by kernel."""
    console.print(Text(_summary(e), style="bold"))
    for line in profile_lines(e.measured):
        console.print(Text(line))
    shown = e.kernels[: limit or None]
    console.print()
    estimate = "XLA's model" if e.bandwidth is None else "at that bandwidth"
    columns = [("measured", "right"), (estimate, "right"), ("error", "right"), ("kernel", "name")]
    rows = [_row(k, e) for k in shown]
    if any(k.cycles is not None for k in shown):
        columns.insert(3, ("XLA's cycles per µs", "right"))
        for k, row in zip(shown, rows, strict=True):
            row.insert(3, f"{k.cycles / k.measured_us:,.0f}" if k.cycles is not None else "")
    print_rows(console, [*columns, ("source line", "left")], rows, drop=(len(columns),))
    if len(shown) < len(e.kernels):
        left = len(e.kernels) - len(shown)
        console.print(Text(f"… {left:,} more (--limit 0 shows all)", style="dim"))


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
    name = printable(k.place.final or k.place.name) + times_text(k.runs)
    bound = "≥ " if k.is_floor and e.bandwidth is None else ""
    error = _error(k.ratio) if not bound else "above" if k.off_us else ""
    source = printable((k.place.called_from or k.place.source or "").split(" ")[0])
    return [us_text(k.measured_us), bound + us_text(k.estimate_us), error, name, source]


def _error(ratio: float) -> str:
    """The error of an estimate: `−47%`, or `3.1×` from twice as long on."""
    if ratio >= 2:
        return f"{ratio:.1f}×"
    change = round(100 * (ratio - 1))
    return f"{'−' if change < 0 else '+'}{abs(change)}%" if change else "±0%"
