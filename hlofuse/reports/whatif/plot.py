"""A sweep as a picture: kernels, bytes and estimated time over the first axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlofuse.account import Totals
from hlofuse.format.escape import shorten
from hlofuse.format.units import bytes_text, us_text
from hlofuse.plot.figure import COLORS, Plot, Position, round_numbers
from hlofuse.render.palette import FAINT, INK, LINE, PALE
from hlofuse.render.scene import SMALL
from hlofuse.reports.whatif import phrases
from hlofuse.reports.whatif.model import Point, Sweep

_WIDTH, _HEIGHT, _GAP = 230.0, 150.0, 74.0
_MOST_LABELS = 12


@dataclass(frozen=True, slots=True)
class _Series:
    """Points that differ in the first axis only."""

    label: str
    color: str
    style: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class _Measure:
    title: str
    value: Callable[[Totals], float]
    text: Callable[[float], str]
    whole: bool = False


def plot_sweep(s: Sweep) -> Plot:
    """Draw a sweep: one line for each device and each combination of the other axes."""
    series = _series(s)
    measures = [
        _Measure("kernels", lambda t: t.kernels, lambda v: f"{v:,.0f}", whole=True),
        _Measure("bytes moved", lambda t: t.cost.bytes_accessed, bytes_text),
    ]
    if s.timed:
        measures.append(_Measure("estimated time", lambda t: t.us or 0.0, us_text))
    description = f"{', '.join(m.title for m in measures)} over {s.axes[0].name}"
    canvas = Plot(phrases.sweep_headline(s), description)
    room = len(measures) * (_WIDTH + _GAP)
    alert = "Ringed points and dashed lines: XLA's own result."
    canvas.heading((-44, _HEIGHT + 66), [alert], [phrases.untimed_note(s.xla[0])], room)
    for k, measure in enumerate(measures):
        _panel(canvas, s, series, measure, k * (_WIDTH + _GAP))
    if len(series) > 1:
        _legend(canvas, series, room)
    return canvas


def _series(s: Sweep) -> list[_Series]:
    found: dict[tuple[str | None, tuple[str, ...]], list[Point]] = {}
    for p in s.points:
        found.setdefault((p.device, p.values[1:]), []).append(p)
    out = []
    for k, ((device, others), points) in enumerate(found.items()):
        names = [device or ""] if len(s.devices) > 1 else []
        names += [f"{a.name}={v}" for a, v in zip(s.axes[1:], others, strict=True)]
        style = ("solid", "dashed", "dotted")[k // len(COLORS) % 3]
        out.append(_Series(", ".join(names), COLORS[k % len(COLORS)], style, tuple(points)))
    return out


def _panel(canvas: Plot, s: Sweep, series: Sequence[_Series], measure: _Measure, left: float) -> None:
    shown = [measure.value(p.totals) for one in series for p in one.points]
    xla = [measure.value(t) for t in s.xla]
    ticks = round_numbers(min(*shown, *xla), max(*shown, *xla), measure.whole)
    low, high = ticks[0], ticks[-1]

    def y(value: float) -> float:
        return (value - low) / (high - low) * _HEIGHT

    def place(position: int, value: float) -> Position:
        count = len(s.axes[0].values)
        return left + _WIDTH * (position + 0.5) / count, y(value)

    canvas.text((left - 44, _HEIGHT + 14), measure.title, size=11, bold=True)
    for tick in ticks:
        canvas.line([(left, y(tick)), (left + _WIDTH, y(tick))], PALE, width=0.7)
        canvas.text((left - 5, y(tick)), measure.text(tick), size=SMALL, color=FAINT, align="right", width=60)
    canvas.line([(left, 0), (left + _WIDTH, 0)], LINE)
    _x_labels(canvas, s, left)
    for value in dict.fromkeys(xla):
        canvas.line([(left, y(value)), (left + _WIDTH, y(value))], FAINT, width=1.1, style="dashed")
    for one in series:
        places = [place(k, measure.value(p.totals)) for k, p in enumerate(one.points)]
        canvas.line(places, one.color, width=1.8, style=one.style)
    for one in series:
        for k, p in enumerate(one.points):
            value = measure.value(p.totals)
            tooltip = f"{one.label} {s.axes[0].name}={p.values[0]}: {measure.text(value)}".strip()
            canvas.point(place(k, value), one.color, ring=p.is_xla, tooltip=tooltip)


def _x_labels(canvas: Plot, s: Sweep, left: float) -> None:
    values = s.axes[0].values
    room = _WIDTH / len(values)
    widest = max(len(v) for v in values) * 4.6 + 6
    every = max(1, math.ceil(widest / room), math.ceil(len(values) / _MOST_LABELS))
    for k, value in enumerate(values):
        if k % every == 0:
            at = (left + room * (k + 0.5), -10.0)
            canvas.text(at, value, size=SMALL, color=FAINT, align="center", width=room * every)
    unit = f" ({s.axes[0].unit})" if s.axes[0].unit else ""
    name = shorten(s.axes[0].name, 44) + unit
    canvas.text((left + _WIDTH / 2, -24), name, size=9, align="center", width=_WIDTH)


def _legend(canvas: Plot, series: Sequence[_Series], room: float) -> None:
    x, y = -44.0, -46.0
    for one in series:
        width = 26 + 5.2 * len(one.label) + 18
        if x > -44 and x + width > room:
            x, y = -44.0, y - 15
        canvas.line([(x, y), (x + 20, y)], one.color, width=1.8, style=one.style)
        canvas.text((x + 26, y), one.label, size=9, color=INK, width=width)
        x += width
