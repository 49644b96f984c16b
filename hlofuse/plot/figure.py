"""What every plot is made of: the finished picture, round numbers for its axes, its colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hlofuse.ir.errors import HlofuseError
from hlofuse.plot.canvas import Canvas
from hlofuse.render import engine, svg
from hlofuse.render.drawing import FORMATS, undated

# Okabe and Ito's hues, which stay apart under every common colour blindness.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8f8400", "#56b4e9", "#6546a3", "#424a53")
_PLACED = "-Knop2"  # every node has its place


@dataclass(frozen=True, slots=True)
class Plot:
    """DOT with every place settled, and what Graphviz makes of it."""

    dot: str
    title: str
    description: str
    tooltips: Mapping[str, list[str]] = field(default_factory=dict)

    def to_svg(self) -> str:
        """A self-contained SVG. Needs Graphviz, as the other formats do."""
        return svg.finish(engine.run(self.dot, "svg", _PLACED), self.title, self.description, self.tooltips)

    def to_bytes(self, fmt: str) -> bytes:
        """The picture as `svg`, `png`, `pdf` or `dot`."""
        if fmt not in FORMATS:
            raise HlofuseError(f"cannot draw {fmt!r}; the formats are {', '.join(FORMATS)}")
        if fmt == "dot":
            return self.dot.encode()
        if fmt == "svg":
            return self.to_svg().encode()
        if fmt == "png":
            return engine.run(self.dot, "png", _PLACED, "-Gdpi=144")
        return undated(engine.run(self.dot, "pdf", _PLACED))


def plot_of(canvas: Canvas, title: str, description: str) -> Plot:
    """The finished picture."""
    return Plot(canvas.to_dot(), title, description, canvas.tooltips)


def round_numbers(low: float, high: float, whole: bool) -> list[float]:
    """Round numbers around all values, four or five of them; zero is among them where it is near."""
    if low > 0 and low < high * 0.4:
        low = 0
    if whole:
        low, high = max(0, low - 0.5), high + 0.5
    if high == low:
        low, high = (low - 1, high + 1) if whole or not low else (low * 0.9, high * 1.1)
    raw = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(f * size for f in (1, 2, 2.5, 5, 10) if f * size >= raw * 0.999)
    if whole:
        step = max(1.0, math.ceil(step))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    if first >= 0:
        first = max(first, 0)
    return [k * step for k in range(first, max(last, first + 1) + 1)]
