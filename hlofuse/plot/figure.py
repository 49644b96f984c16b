"""Charts as SVG: lines, points and text at given places, and rows of bars with a label and figures."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from xml.sax.saxutils import escape, quoteattr

from hlofuse.account import Account, KernelTimes, Launched
from hlofuse.analysis.kernels import kernel_source
from hlofuse.compilation import Compilation
from hlofuse.format import bytes_text, plural, printable, shorten, us_text
from hlofuse.format.paths import source_text
from hlofuse.ir import Module, Record, Strings, parse_module
from hlofuse.memory import Assignment
from hlofuse.render.dot import ALERT, FAINT, FONT, INK, PALE
from hlofuse.render.drawing import document, inline, zoomable
from hlofuse.render.scene import SMALL, ModulePair, text_width

Position = tuple[float, float]  # Points of 1/72 inch, to the right and up

# Of Okabe and Ito's hues, which stay apart under every common colour blindness.
COLORS = ("#0072b2", "#d55e00")
_MARGIN = 14.4
_RADIUS = 4.5


class Plot:
    """Elements at fixed positions; earlier ones lie below."""

    def __init__(self, title: str, description: str) -> None:
        self.title = title
        self.description = description
        self._svg: list[str] = []
        self._low, self._high = (math.inf, math.inf), (-math.inf, -math.inf)

    def _reach(
        self,
        left: float,
        bottom: float,
        right: float,
        top: float,
    ) -> None:
        self._low = min(self._low[0], left), min(self._low[1], bottom)
        self._high = max(self._high[0], right), max(self._high[1], top)

    def text(
        self,
        at: Position,
        text: str,
        *,
        size: float = 9,
        color: str = INK,
        align: str = "left",
        bold: bool = False,
    ) -> None:
        """A line of text; `align` is the end at `at`."""
        if not text:
            return
        x, y = at
        wide = text_width(text, size, bold)
        left, anchor = (x, "start") if align == "left" else (x - wide, "end")
        self._reach(left, y - size * 0.65, left + wide, y + size * 0.65)
        weight = ' font-weight="bold"' if bold else ""
        self._svg.append(
            f'<text xml:space="preserve" x="{x:.2f}" y="{size * 0.35 - y:.2f}" font-size="{size:g}" '
            f'text-anchor="{anchor}" fill="{color}"{weight}>{escape(printable(text))}</text>\n'
        )

    def point(self, at: Position, color: str, tooltip: str) -> None:
        """A ring."""
        x, y = at
        look = f'stroke="{color}" stroke-width="2" fill="#ffffff"'
        self._mark(f'<circle cx="{x:.2f}" cy="{-y:.2f}" r="{_RADIUS:g}" {look}/>', tooltip)
        self._reach(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS)

    def bar(
        self,
        at: Position,
        width: float,
        height: float,
        color: str,
        *,
        hollow: bool = False,
        tooltip: str = "",
    ) -> None:
        """A rectangle to the right of `at`, its middle at that height; only its outline with `hollow`."""
        width = max(width, 0.4)
        place = f'x="{at[0]:.2f}" y="{-at[1] - height / 2:.2f}" width="{width:.2f}" height="{height:g}"'
        fill = "#ffffff" if hollow else color
        self._mark(f'<rect {place} fill="{fill}" stroke="{color}"/>', tooltip)
        self._reach(at[0], at[1] - height / 2, at[0] + width, at[1] + height / 2)

    def _mark(self, shape: str, tooltip: str) -> None:
        title = f"<title>{escape(printable(tooltip))}</title>" if tooltip else ""
        self._svg.append(f'<g class="node">{title}{shape}</g>\n')

    def line(self, places: Sequence[Position], color: str, *, width: float = 1.0) -> None:
        for x, y in places:
            self._reach(x, y, x, y)
        points = quoteattr(" ".join(f"{x:.2f},{-y:.2f}" for x, y in places))
        self._svg.append(
            f'<polyline points={points} fill="none" stroke="{color}" stroke-width="{width:g}"/>\n'
        )

    def heading(
        self,
        at: Position,
        alerts: Sequence[str],
        lines: Sequence[str],
    ) -> None:
        """The title, and below it the lines, `alerts` in their own colour."""
        self.text(at, self.title, size=14, bold=True)
        for k, line in enumerate([*alerts, *lines]):
            color = ALERT if k < len(alerts) else FAINT
            self.text((at[0], at[1] - 17 - 13 * k), line, size=9, color=color)

    def size(self) -> tuple[float, float]:
        width, height = (high - low + 2 * _MARGIN for low, high in zip(self._low, self._high, strict=True))
        return round(width, 2), round(height, 2)

    def to_svg(self) -> str:
        """A self-contained SVG for a page, on a card of its size."""
        shift = f"translate({_MARGIN - self._low[0]:.2f} {_MARGIN + self._high[1]:.2f})"
        body = [f'<g font-family="{FONT}" transform="{shift}">\n', *self._svg, "</g>\n"]
        return document(*self.size(), self.title, self.description, body)

    def to_bytes(self) -> bytes:
        """The SVG as a separate file, with zoom and pan."""
        return zoomable(self.to_svg()).encode()

    def _repr_html_(self) -> str:
        return inline(self.to_svg(), self.size()[0])

    def _repr_svg_(self) -> str:
        return self.to_svg()


_WIDTH = 200.0
_GAP = 34.0
_FIGURE = 62.0
_THICK = 11.0
_MOMENTS = 600  # parts of the schedule that a plot of memory shows
MOST = 30  # The limit of kernels with a row of their own


class Column(Record):
    title: str
    text: Callable[[float], str]


class Row(Record):
    """A measured kernel: for each column a value for each series, or None."""

    label: str
    values: tuple[tuple[float | None, ...], ...]
    note: str = ""  # Tooltip of the bars
    source: str = ""  # The source line, below the label


class Series(Record):
    """Appearance of one bar of each row: colour, and hollow or full."""

    label: str
    color: str
    hollow: bool = False


def bar_chart(
    title: str,
    lines: Sequence[str],
    columns: Sequence[Column],
    series: Sequence[Series],
    rows: Sequence[Row],
    alerts: Sequence[str] = (),
) -> Plot:
    """Rows from the top down; every column has its own scale, from zero."""
    names = ", ".join(column.title for column in columns)
    canvas = Plot(title, f"{names}: {'; '.join(lines)}")
    labels = [(shorten(row.label, 44), shorten(row.source, 44)) for row in rows]
    left = max(max(text_width(label, 9), text_width(source, SMALL)) for label, source in labels) + 14
    step = _THICK * max(len(series), 1 + any(row.source for row in rows)) + 9
    bottom = -step * len(rows)
    head = 34.0 + 13 * (len(lines) + len(alerts)) + (18 if len(series) > 1 else 0)
    canvas.heading((0, head), alerts, lines)
    x = 0.0
    for one in series if len(series) > 1 else ():
        canvas.bar((x, 28), 14, 8, one.color, hollow=one.hollow)
        canvas.text((x + 19, 28), one.label, size=9)
        x += 19 + text_width(one.label, 9) + 24
    for n, (label, source) in enumerate(labels):
        half = _THICK / 2 if source else 0.0
        canvas.text((0, -step * (n + 0.5) + half), label, size=9)
        canvas.text((0, -step * (n + 0.5) - half), source, size=SMALL, color=FAINT)
    for c, column in enumerate(columns):
        x = left + c * (_WIDTH + _FIGURE + _GAP)
        most = max((v for row in rows for v in row.values[c] if v is not None), default=0.0) or 1.0
        canvas.text((x, 9), column.title, size=10, bold=True)
        canvas.line([(x, 2), (x, bottom)], PALE)
        for n, row in enumerate(rows):
            for k, (one, value) in enumerate(zip(series, row.values[c], strict=True)):
                if value is None:
                    continue
                y = -step * (n + 0.5) + _THICK * ((len(series) - 1) / 2 - k)
                width = value / most * _WIDTH
                text = " ".join(filter(None, (one.label, column.text(value), row.note)))
                tooltip = f"{row.label}: {text}"
                canvas.bar((x, y), width, _THICK - 2, one.color, hollow=one.hollow, tooltip=tooltip)
                canvas.text((x + width + 4, y), column.text(value), size=SMALL, color=FAINT)
    return canvas


def plot_memory(module: Module, memory: Assignment, title: str) -> Plot:
    """Bytes of temporary arrays alive at each instruction, in order; the most of those that share a bar."""
    bytes_alive = memory.over_time[: memory.live.end] or [0]
    most = max(bytes_alive)
    at_peak = bytes_alive.index(most)
    step = -(-len(bytes_alive) // _MOMENTS)
    parts = [max(bytes_alive[k : k + step]) for k in range(0, len(bytes_alive), step)]
    width = _WIDTH * 3
    height = _WIDTH
    places = []
    for k, value in enumerate(parts):
        y = value / (most or 1) * height
        places += [(k * width / len(parts), y), ((k + 1) * width / len(parts), y)]
    lines = [f"{bytes_text(most)} of temporary arrays alive at the peak, {plural(len(memory.peak), 'array')}"]
    canvas = Plot(title, lines[0])
    canvas.heading((0, height + 58), (), [*lines, "alive at each instruction, in the order of execution"])
    canvas.line([(0, 0), (width, 0)], PALE)
    canvas.line(places, COLORS[0], width=1.5)
    if memory.live.order:
        peak = memory.live.order[at_peak]
        source = source_text(kernel_source(peak, module))
        where = f" at {source}" if source else ""
        place = ((at_peak // step + 0.5) * width / len(parts), height)
        canvas.point(place, COLORS[1], f"{peak.name}{where}: {bytes_text(most)}")
        side = "right" if place[0] > width / 2 else "left"
        canvas.text((place[0], height + 12), f"{peak.name}{where}", size=SMALL, align=side)
    return canvas


def plot_kernels(
    pair: ModulePair,
    before: Account,
    after: Account,
    names_at_fusion: Mapping[str, str],
    title: str,
    alerts: Strings = (),
    most: int = MOST,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Plot:
    """The largest kernels over all launches; time if there is an estimate, else bytes. `after` is launched,
    `names_at_fusion` has the names of its kernels in the pair's second module, and `labels` those in the
    plot. Work fused into several kernels counts in equal parts in each."""
    timed = after.totals.us is not None

    def measure(row: Launched) -> float:
        return (row.total_us or 0.0) if timed else float(row.cost.bytes_accessed * row.runs)

    found = _kernel_rows(pair, before, after, names_at_fusion, labels, measure)
    found.sort(key=lambda row: _sides(row)[::-1], reverse=True)
    rows = found[:most]
    lines = [title, "kernels after fusion, largest first; before: the kernels that were fused into each"]
    if rest := list(map(_sides, found[most:])):
        sums = sum(one for one, _ in rest), sum(other for _, other in rest)
        rows.append(Row(f"… {plural(len(rest), 'more kernel')}", (sums,)))
    if after.totals.floors:
        lines.append(f"{plural(after.totals.floors, 'matmul or library kernel')}: a lower bound")
    column = Column("estimated time, launch overhead included", us_text) if timed else None
    series = [Series("before", "#59636e", hollow=True), Series("after", COLORS[0])]
    return bar_chart(
        pair.after.name, lines, [column or Column("bytes moved", bytes_text)], series, rows, alerts
    )


def _sides(row: Row) -> tuple[float, float]:
    before, after = row.values[0]
    return before or 0.0, after or 0.0


def _kernel_rows(
    pair: ModulePair,
    before: Account,
    after: Account,
    names_at_fusion: Mapping[str, str],
    labels: Mapping[str, str],
    measure: Callable[[Launched], float],
) -> list[Row]:
    launched = {names_at_fusion.get(r.instruction.name, r.instruction.name): r for r in after.rows}
    shares: dict[str, list[float]] = {name: [] for name in launched}
    removed = []
    for row in before.rows:
        into = dict.fromkeys(k.name for k in pair.kernels.get(row.instruction, ()))
        final = [name for name in into if name in shares]
        if not final:
            removed.append(measure(row))
        for name in final:
            shares[name].append(measure(row) / len(final))
    found = []
    for name, row in launched.items():
        label = labels.get(row.instruction.name, row.instruction.name)
        note = f"fused from {plural(len(shares[name]), 'kernel')}"
        source = source_text(kernel_source(row.instruction, after.module))
        runs = f"×{row.runs:,}" if row.runs != 1 else ""
        below = [text for text in (source, runs) if text]
        values = (sum(shares[name]), measure(row))
        if any(values):
            found.append(Row(label, (values,), note, ", ".join(below)))
    if removed:
        note = f"{plural(len(removed), 'kernel')} before fusion"
        found.append(Row("removed: no kernel computes it", ((sum(removed), 0.0),), note))
    return found


def plot_passes(replay: Compilation, times: KernelTimes | None, alerts: Strings = ()) -> Plot:
    """Plots the passes of a `replay` made with `keep_modules`; passes without changes are only counted."""
    rows = [_pass_row("fusion input", replay.before, times)]
    idle = 0
    for number, done in enumerate(replay.passes, 1):
        if not done.changed or done.module_text is None:
            idle += 1
            continue
        last = number == len(replay.passes)
        module = replay.after if last else parse_module(done.module_text, strict=False)
        rows.append(_pass_row(f"{number}. {done.name}", module, times))
    rows.append(_pass_row("final module", replay.final, times))
    columns = [Column("kernels", lambda v: f"{v:,.0f}"), Column("bytes moved", bytes_text)]
    if times is not None:
        columns.append(Column("estimated time", us_text))
    where = f" on {replay.device}" if replay.device else ""
    lines = [f"{replay.target} fusion{where}: after each pass that changed the module"]
    if idle:
        lines.append(f"{plural(idle, 'pass changed', 'passes changed')} nothing")
    return bar_chart(replay.before.name, lines, columns, [Series("", COLORS[0])], rows, alerts)


def _pass_row(label: str, module: Module, times: KernelTimes | None) -> Row:
    totals = (times.account(module) if times is not None else Account(module, backend="cpu")).totals
    values = [(float(totals.kernels),), (float(totals.cost.bytes_accessed),)]
    if totals.us is not None:
        values.append((totals.us,))
    return Row(label, tuple(values))
