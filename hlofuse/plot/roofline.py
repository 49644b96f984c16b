"""The roofline: how fast each kernel computes, by how much it computes for each byte it moves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hlofuse.account import KernelTimes
from hlofuse.analysis.kernels import kernels
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.units import plural, quantity, us_text
from hlofuse.ir.graph import Module
from hlofuse.plot.figure import COLORS, Canvas, Plot, Position, plot_of
from hlofuse.render.palette import ALERT, FAINT, LINE, PALE
from hlofuse.render.scene import text_width

_WIDTH, _HEIGHT = 460.0, 300.0
_LABELLED = 5
"""Kernels named in the picture: those that take longest."""
_LABEL_SIZE = 8.0


@dataclass(frozen=True, slots=True)
class _Dot:
    name: str
    flops_per_byte: float
    flops_per_second: float
    us: float


def plot_roofline(
    before: Module,
    after: Module,
    times: KernelTimes,
    title: str,
    alerts: tuple[str, ...] = (),
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Plot:
    """Both modules' kernels on the device of `times`, by the model's own flops, bytes and time.

    `labels` are what the plot calls kernels of `after`, where that is another name.
    """
    sides = [_dots(before, times, {}), _dots(after, times, labels)]
    device = times.device
    roof = device.core_count * device.fpus_per_core * device.clock_rate_ghz * 2e9
    ridge = roof / device.memory_bandwidth
    shown = [d for dots in sides for d in dots]
    low_x = 10 ** math.floor(math.log10(min([d.flops_per_byte for d in shown] + [ridge / 10])))
    high_x = 10 ** math.ceil(math.log10(max([d.flops_per_byte for d in shown] + [ridge * 4])))
    low_y = 10 ** math.floor(math.log10(min([d.flops_per_second for d in shown] + [roof / 100])))
    high_y = 10 ** math.ceil(math.log10(roof * 1.5))

    def place(x: float, y: float) -> tuple[float, float]:
        along = math.log(x / low_x) / math.log(high_x / low_x)
        up = math.log(y / low_y) / math.log(high_y / low_y)
        return along * _WIDTH, up * _HEIGHT

    canvas = Canvas()
    _heading(canvas, after.name, [*alerts], [title, *_notes(before, after, sides, device)])
    for x in _decades(low_x, high_x):
        canvas.line([place(x, low_y), place(x, high_y)], PALE, width=0.6)
        canvas.text((place(x, low_y)[0], -10), f"{x:g}", size=8, color=FAINT, align="center", width=40)
    for y in _decades(low_y, high_y):
        canvas.line([place(low_x, y), place(high_x, y)], PALE, width=0.6)
        canvas.text((-6, place(low_x, y)[1]), quantity(y), size=8, color=FAINT, align="right", width=60)
    canvas.text((_WIDTH / 2, -26), "flops for each byte moved", size=9, align="center", width=_WIDTH)
    canvas.text((-44, _HEIGHT + 14), "flops a second", size=9, width=120)
    start = max(low_x, low_y / device.memory_bandwidth)
    slope = [place(start, start * device.memory_bandwidth), place(ridge, roof)]
    canvas.line([*slope, place(high_x, roof)], LINE, width=2.2)
    flat = place(high_x, roof)
    canvas.text(
        (flat[0], flat[1] + 9), f"{quantity(roof)} a second, float32", size=8, color=FAINT, align="right"
    )
    middle = place(math.sqrt(start * ridge), math.sqrt(start * ridge) * device.memory_bandwidth)
    canvas.text((middle[0] - 8, middle[1] + 9), f"{quantity(device.memory_bandwidth, 'B')}/s", size=8,
                color=FAINT, align="right")  # fmt: skip
    for (word, color, ring), dots in zip(_LOOKS, sides, strict=True):
        for d in dots:
            label = f"{word}: {d.name}, {us_text(d.us)}, {quantity(d.flops_per_second)} flops a second"
            canvas.point(place(d.flops_per_byte, d.flops_per_second), color, ring=ring, tooltip=label)
    longest = sorted(sides[1], key=lambda d: -d.us)[:_LABELLED]
    for at, names in _labels((place(d.flops_per_byte, d.flops_per_second), d.name[:36]) for d in longest):
        canvas.text(at, names, size=_LABEL_SIZE)
    x = -44.0
    for word, color, ring in _LOOKS:
        canvas.point((x + 4, -48), color, ring=ring)
        canvas.text((x + 13, -48), word, size=9, width=60)
        x += 70
    return plot_of(canvas, after.name, "roofline: flops a second over flops for each byte moved")


_LOOKS = (("before", "#59636e", True), ("after", COLORS[0], False))


def _labels(dots: Iterable[tuple[Position, str]]) -> list[tuple[Position, str]]:
    """The names beside their dots: of dots in one place in one line, and none over another.

    A name for which there is no room is left to the tooltip of its dot.
    """
    groups: list[tuple[Position, list[str]]] = []
    for (x, y), name in dots:
        near = (names for at, names in groups if math.dist(at, (x, y)) < _LABEL_SIZE)
        if (names := next(near, None)) is not None:
            names.append(name)
        else:
            groups.append(((x, y), [name]))
    found: list[tuple[Position, str]] = []
    for (x, y), names in groups:
        text = ", ".join(names)
        heights = (y - 1, y - 1 - _LABEL_SIZE, y - 1 + _LABEL_SIZE)
        free = (h for h in heights if not any(_overlap((x + 7, h), text, *other) for other in found))
        if (height := next(free, None)) is not None:
            found.append(((x + 7, height), text))
    return found


def _overlap(a: Position, one: str, b: Position, other: str) -> bool:
    is_apart_from = a[0] + text_width(one, _LABEL_SIZE) < b[0] or b[0] + text_width(other, _LABEL_SIZE) < a[0]
    return not is_apart_from and abs(a[1] - b[1]) < _LABEL_SIZE


def _heading(canvas: Canvas, name: str, alerts: list[str], lines: list[str]) -> None:
    top = _HEIGHT + 40 + 13 * (len(lines) + len(alerts))
    canvas.text((-44, top), name, size=14, width=_WIDTH, bold=True)
    for k, line in enumerate([*alerts, *lines]):
        color = ALERT if k < len(alerts) else FAINT
        canvas.text((-44, top - 17 - 13 * k), line, size=9, width=_WIDTH + 44, color=color)


def _notes(before: Module, after: Module, sides: list[list[_Dot]], device: DeviceDescription) -> list[str]:
    lines = [f"{device.name}: by XLA's model of kernel time, launches not included"]
    missing = [len(kernels(m)) - len(dots) for m, dots in zip((before, after), sides, strict=True)]
    if any(missing):
        lines.append(
            f"not shown: {plural(missing[0], 'kernel')} before, {missing[1]:,} after, that compute nothing"
            " or have no estimate"
        )
    return lines


def _dots(module: Module, times: KernelTimes, labels: Mapping[str, str]) -> list[_Dot]:
    found = []
    for k in kernels(module):
        t = times.kernel(k)
        moved = t.bytes_read + t.bytes_written if t is not None else 0
        if t is not None and t.us > 0 and t.flops > 0 and moved > 0:
            found.append(_Dot(labels.get(k.name, k.name), t.flops / moved, t.flops / t.us * 1e6, t.us))
    return found


def _decades(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    step = max(1, (last - first) // 8)
    return [10.0**k for k in range(first, last + 1, step)]
