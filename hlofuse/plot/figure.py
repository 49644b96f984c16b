"""A drawing of lines, points and text at given places, as SVG."""

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from hlofuse.format.escape import printable
from hlofuse.render.dot import ALERT, FAINT, FONT, INK
from hlofuse.render.drawing import document, inline, zoomable
from hlofuse.render.scene import text_width

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
        """Straight segments from place to place."""
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
