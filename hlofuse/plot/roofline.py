"""The roofline: the FLOP/s of each kernel by its FLOP per byte."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from hlofuse.account import Account, KernelTimes
from hlofuse.account.floor import product_peak, products
from hlofuse.analysis.kernels import kernel_source
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.paths import source_text
from hlofuse.format.units import plural, quantity, us_text
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.record import Record
from hlofuse.plot.figure import COLORS, Plot, Position
from hlofuse.render.dot import FAINT, LINE, PALE
from hlofuse.render.scene import SMALL, text_width

_WIDTH, _HEIGHT = 620.0, 360.0
_LEFT = -70.0
_LABELLED = 10
"""The number of kernels labelled where there is room: the slowest. Others have a tooltip."""


class _Dot(Record):
    instruction: Instruction
    name: str
    flops: float
    bytes: int
    us: float
    """Microseconds of one run, without its launch."""
    total_us: float
    is_floor: bool
    note: str

    @property
    def flops_per_byte(self) -> float:
        return self.flops / self.bytes

    @property
    def flops_per_second(self) -> float:
        return self.flops / self.us * 1e6

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.us * 1e6


def plot_roofline(
    before: Module,
    after: Module,
    times: KernelTimes,
    title: str,
    alerts: tuple[str, ...] = (),
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Plot:
    """All kernels of both modules on the device of `times`, loop iterations counted. `labels` are the plot's
    names for kernels of `after`. A kernel without FLOP stands at the left edge, as far below the roof as its
    bandwidth is below the device's."""
    sides = [_dots(times, times.account(before), {}), _dots(times, times.account(after), labels)]
    shown = [d for dots in sides for d in dots]
    device = times.device
    roofs = _roofs(device, [kernel for d in shown for kernel in products(d.instruction)])
    roof = min(roofs)
    ridge = roof / device.memory_bandwidth
    computing = [d for d in shown if d.flops]
    low_x = _decade(min([d.flops_per_byte for d in computing] + [ridge / 10]) / 2)
    high_x = _decade(max([d.flops_per_byte for d in computing] + [ridge * 4]), up=True)
    moving = [d.bytes_per_second * low_x for d in shown if not d.flops]
    low_y = _decade(min([d.flops_per_second for d in computing] + moving + [roof / 100]))
    high_y = _decade(max([d.flops_per_second for d in computing] + [max(roofs) * 1.5]), up=True)

    def place(x: float, y: float) -> Position:
        along = math.log(x / low_x) / math.log(high_x / low_x)
        up = math.log(y / low_y) / math.log(high_y / low_y)
        return along * _WIDTH, up * _HEIGHT

    def position(d: _Dot) -> Position:
        if d.flops:
            return place(d.flops_per_byte, d.flops_per_second)
        return place(low_x, d.bytes_per_second * low_x)

    canvas = Plot(after.name, "roofline: FLOP/s over FLOP for each byte")
    lines = [title, "time by XLA's model, launch overhead excluded"]
    if floors := sum(d.is_floor for d in sides[1]):
        lines.append(f"squares: {plural(floors, 'matmul or library kernel')} at the lower bound of the time")
    top = _HEIGHT + 24 + 13 * (len(lines) + len(alerts))
    canvas.heading((_LEFT, top), alerts, lines)
    for x in _decades(low_x, high_x):
        canvas.line([place(x, low_y), place(x, high_y)], PALE, width=0.6)
        label = "0" if x == low_x else f"{x:g}"
        canvas.text((place(x, low_y)[0], -10), label, size=SMALL, color=FAINT, align="center")
    for y in _decades(low_y, high_y):
        canvas.line([place(low_x, y), place(high_x, y)], PALE, width=0.6)
        text = quantity(y, "FLOP/s").replace(".00 ", " ").replace(".0 ", " ")
        canvas.text((-8, place(low_x, y)[1]), text, size=SMALL, color=FAINT, align="right")
    canvas.text((_WIDTH / 2, -27), "FLOP for each byte read or written", size=9, align="center")
    taken = [_area(position(d)) for d in shown]

    def roof_line(low: Position, high: Position) -> None:
        canvas.line([low, high], LINE, width=2.2)
        count = math.ceil(math.dist(low, high) / 4)
        points = [[a + (b - a) * n / count for a, b in zip(low, high, strict=True)] for n in range(count)]
        taken.extend(((x - 2, y - 2), (x + 2, y + 2)) for x, y in points)

    def roof_label(at: Position, text: str) -> None:
        canvas.text(at, text, size=SMALL, color=FAINT, align="right")
        taken.append(_area((at[0] - text_width(text, SMALL), at[1]), text))

    start = max(low_x, low_y / device.memory_bandwidth)
    highest = min(max(roofs), high_x * device.memory_bandwidth)
    roof_line(
        place(start, start * device.memory_bandwidth), place(highest / device.memory_bandwidth, highest)
    )
    for peak, name in roofs.items():
        right = place(high_x, peak)
        if peak / device.memory_bandwidth < high_x:
            roof_line(place(peak / device.memory_bandwidth, peak), right)
            roof_label((right[0], right[1] + 9), f"{quantity(peak, 'FLOP/s')}, {name}")
    middle = place(math.sqrt(start * ridge), math.sqrt(start * ridge) * device.memory_bandwidth)
    roof_label((middle[0] - 8, middle[1] + 9), f"{quantity(device.memory_bandwidth, 'B')}/s")
    for (side, color, ring), dots in zip(_LOOKS, sides, strict=True):
        for d in dots:
            rate = f"{quantity(d.flops_per_second, 'FLOP/s')}, {quantity(d.bytes_per_second, 'B')}/s"
            label = f"{side}: {d.name}, {us_text(d.total_us)}, {rate}{d.note}"
            x, y = position(d)
            if d.is_floor:
                canvas.bar((x - 3, y), 6, 6, color, hollow=ring, tooltip=label)
            else:
                canvas.point((x, y), color, ring=ring, tooltip=label)
    hottest = sorted(sides[1], key=lambda d: -d.total_us)[:_LABELLED]
    for at, name, leader in _labels(((position(d), d.name[:40]) for d in hottest), taken):
        canvas.line(leader, LINE, width=0.5)
        canvas.text(at, name, size=SMALL)
    x = _LEFT
    for side, color, ring in _LOOKS:
        canvas.point((x + 4, -48), color, ring=ring)
        canvas.text((x + 13, -48), side, size=9)
        x += 70
    return canvas


_LOOKS = (("before", "#59636e", True), ("after", COLORS[0], False))

_Area = tuple[Position, Position]
"""The lower left and the upper right corner."""


def _area(at: Position, name: str = "") -> _Area:
    """The area of a label that starts there, or without one of a dot."""
    if not name:
        return (at[0] - 5, at[1] - 5), (at[0] + 5, at[1] + 5)
    half = SMALL * 0.6
    return (at[0], at[1] - half), (at[0] + text_width(name, SMALL), at[1] + half)


def _labels(
    dots: Iterable[tuple[Position, str]], taken: list[_Area]
) -> list[tuple[Position, str, list[Position]]]:
    """Names next to their dots, of dots in one place in one line, without overlaps. With each is the line
    from its dot. A name without room is left to the dot's tooltip."""
    groups: list[tuple[Position, list[str]]] = []
    for at, name in dots:
        near = (names for other, names in groups if math.dist(at, other) < SMALL)
        if (names := next(near, None)) is not None:
            names.append(name)
        else:
            groups.append((at, [name]))
    found = []
    for (x, y), names in groups:
        text = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
        wide = text_width(text, SMALL)
        for level in sorted(range(-8, 9), key=abs):
            height = y + level * 11
            places = [(x + 8, height), (x - 9 - wide, height)]
            free = [
                at
                for at in places
                if 0 < at[0] < _WIDTH - wide
                and 0 < height < _HEIGHT
                and not any(_overlap(_area(at, text), other) for other in taken)
            ]
            if free:
                end = (x + 7, height) if free[0] is places[0] else (x - 7, height)
                found.append((free[0], text, [(x, y), end]))
                taken.append(_area(free[0], text))
                break
    return found


def _overlap(a: _Area, b: _Area) -> bool:
    return all(a[0][k] < b[1][k] and b[0][k] < a[1][k] for k in (0, 1))


def _dots(times: KernelTimes, account: Account, labels: Mapping[str, str]) -> list[_Dot]:
    found = []
    for row in account.rows:
        estimate = times.kernel(row.instruction) if not row.is_floor else None
        cost = row.cost
        flops, moved = cost.flops, cost.bytes_accessed
        if estimate is not None:  # the model counts what the device executes for a transcendental
            flops, moved = estimate.flops, estimate.bytes_read + estimate.bytes_written
        us = (row.us or 0.0) - row.launch_us
        if us <= 0 or not moved or not row.total_us:
            continue
        source = kernel_source(row.instruction, account.module)
        note = f", ×{row.runs:,}" if row.runs != 1 else ""
        note += ", lower bound of its time" if row.is_floor else ""
        note += f", {source_text(source)}" if source is not None else ""
        name = labels.get(row.instruction.name, row.instruction.name)
        found.append(_Dot(row.instruction, name, flops, moved, us, row.total_us, row.is_floor, note))
    return found


def _roofs(device: DeviceDescription, computed: Iterable[tuple[int, str]]) -> dict[float, str]:
    """The device's maximal FLOP/s, and the units: cores, and matrix units."""
    roofs = {device.core_count * device.fpus_per_core * device.clock_rate_ghz * 2e9: "float32"}
    for element_type in sorted({element_type for _, element_type in computed}):
        if peak := product_peak(device, element_type):
            roofs.setdefault(peak * 1e9, f"{element_type} matmul")
    return roofs


def _decade(value: float, up: bool = False) -> float:
    power = math.log10(value)
    return 10.0 ** (math.ceil(power) if up else math.floor(power))


def _decades(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    step = max(1, (last - first) // 8)
    return [10.0**k for k in range(first, last + 1, step)]
