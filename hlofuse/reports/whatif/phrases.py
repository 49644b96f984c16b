"""Sentences and figures of what-if runs."""

from collections.abc import Iterable, Iterator

from hlofuse.account import Totals
from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, us_text
from hlofuse.reports.common.phrases import floors_and_copies
from hlofuse.reports.comparison.model import Comparison
from hlofuse.reports.comparison.phrases import share
from hlofuse.reports.whatif.model import Point, Sweep, SweepAxis


def untimed_note(t: Totals) -> str:
    """For how many kernels the times hold a lower bound, or that there are no times; empty for neither."""
    if t.us is None:
        return (
            "no time estimate for this target: fewer kernels and bytes can still be slower if values are"
            " recomputed"
        )
    return "; ".join(floors_and_copies(t))


CHANGED_DECISIONS = "Changed decisions: + fused here but not by XLA, − fused by XLA but not here."
_MARK = " *"


def marks_line(differences: Iterable[Comparison]) -> str:
    """The meaning of the marks at times; empty where there is none."""
    if not any(map(_mark, differences)):
        return ""
    return "*: this time includes lower bounds for more or fewer kernels than the time it is compared with."


def _mark(d: Comparison) -> str:
    return _MARK if d.replayed.us is not None and d.xla.floors != d.replayed.floors else ""


def edges_text(d: Comparison) -> str:
    """`+5 −1`: edges fused that XLA does not fuse, and the other way round."""
    parts = [f"+{len(d.fused):,}"] if d.fused else []
    parts += [f"−{len(d.parted):,}"] if d.parted else []
    return " ".join(parts) or "–"


def sweep_rows(s: Sweep) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """One row for each point, and one for XLA's own where no point is that; true for XLA's."""
    for device, xla, values in zip(s.devices, s.xla, s.xla_values, strict=True):
        points = [p for p in s.points if p.device == device]
        if not any(p.is_xla for p in points):
            head = [printable(device or "")] if len(s.devices) > 1 else []
            yield True, (*head, *map(printable, values), *_totals(xla, None), "XLA")
        for p in points:
            yield p.is_xla, _sweep_row(s, p)


def _sweep_row(s: Sweep, p: Point) -> tuple[str, ...]:
    head = [printable(p.device or "")] if len(s.devices) > 1 else []
    against = "XLA" if p.is_xla else edges_text(p.difference)
    kernels, moved, time = _totals(p.totals, p.difference.xla)
    return (*head, *map(printable, p.values), kernels, moved, time + _mark(p.difference), against)


def _totals(t: Totals, xla: Totals | None) -> tuple[str, ...]:
    moved, time = bytes_text(t.cost.bytes_accessed), us_text(t.us) if t.us is not None else ""
    if xla is not None:
        moved += share(xla.cost.bytes_accessed, t.cost.bytes_accessed)
        if xla.us is not None and t.us is not None:
            time += share(xla.us, t.us)
    return (f"{t.kernels:,}", moved, time)


def sweep_columns(s: Sweep) -> tuple[str, ...]:
    """The headings that go with `sweep_rows`."""
    head = ["device"] if len(s.devices) > 1 else []
    return (*head, *(printable(a.name) for a in s.axes), "kernels", "moved", "est. time", "changed decisions")


def sweep_headline(s: Sweep) -> str:
    """The headline: the swept knobs, and that the result is not XLA's."""
    names = " × ".join(printable(a.name) for a in s.axes)
    fixed = f", changed: {', '.join(map(printable, s.changes))}" if s.changes else ""
    devices = [printable(d) for d in s.devices if d]
    on = f" ({', '.join(devices)})" if devices else ""
    return f"{printable(s.module)} on {s.target}{on}: sweep of {names}{fixed}"


def axis_line(a: SweepAxis, xla: list[str]) -> str:
    """The description of a knob, and XLA's value."""
    unit = f" {a.unit}" if a.unit else ""
    values = ", ".join(dict.fromkeys(x for x in xla if x))
    xla_text = f"; XLA: {values}{unit}" if values else ""
    return f"{printable(a.name)}: {printable(a.summary.rstrip('.'))}{xla_text}"
